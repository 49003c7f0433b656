package table

import "github.com/lathe-ml/lathe/ops"

var recurrent = []ops.Row{
	{
		Schema: "aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
		Doc:    "A long short-term memory network over padded sequences.",
		Infer:  "inferLstm",
		Interp: "evalRnn",
		Decomp: "decompLstm",
	},
	{
		Schema: "aten::lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
		Doc:    "One step of a long short-term memory.",
		Infer:  "inferLstmCell",
		Interp: "evalRnnCell",
		Decomp: "decompLstmCell",
	},
	{
		Schema: "aten::gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
		Doc:    "A gated recurrent network over padded sequences.",
		Infer:  "inferGru",
		Interp: "evalRnn",
		Decomp: "decompGru",
	},
	{
		Schema: "aten::gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
		Doc:    "One step of a gated recurrent unit.",
		Infer:  "inferRnnCell",
		Interp: "evalRnnCell",
		Decomp: "decompGruCell",
	},
	{
		Schema: "aten::rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
		Doc:    "A recurrent network with tanh over padded sequences.",
		Infer:  "inferGru",
		Interp: "evalRnn",
		Decomp: "decompRnn",
	},
	{
		Schema: "aten::rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
		Doc:    "A recurrent network with relu over padded sequences.",
		Infer:  "inferGru",
		Interp: "evalRnn",
		Decomp: "decompRnn",
	},
	{
		Schema: "aten::rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
		Doc:    "One step of a recurrent network.",
		Infer:  "inferRnnCell",
		Interp: "evalRnnCell",
		Decomp: "decompRnnCell",
	},
	{
		Schema: "aten::rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
		Doc:    "One step of a recurrent network.",
		Infer:  "inferRnnCell",
		Interp: "evalRnnCell",
		Decomp: "decompRnnCell",
	},
}
