module github.com/lathe-ml/lathe

go 1.26
