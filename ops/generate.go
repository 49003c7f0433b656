package ops

//go:generate go run github.com/lathe-ml/lathe/tools/opgen -root ..
