package mlx

import "github.com/lathe-ml/lathe/ops"

var customRules = map[ops.ID]rule{}
