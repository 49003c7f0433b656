package table

import "github.com/lathe-ml/lathe/ops"

var attention = []ops.Row{
	{
		Schema: "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
		Doc:    "softmax(query key^T * scale + mask) value.",
		DTypes: ops.Floats,
		Infer:  "inferSdpa",
		Interp: "evalSdpa",
		Decomp: "decompSdpa",
	},
	{
		Schema: "aten::_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
		Doc:    "scaled_dot_product_attention and the weights.",
		Infer:  "inferSdpaMath",
		Interp: "evalSdpa",
		Decomp: "decompSdpaMath",
	},
	{
		Schema: "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
		Doc:    "scaled_dot_product_attention and the log-sum-exp.",
		Infer:  "inferSdpaFlashCpu",
		Interp: "evalSdpa",
		Decomp: "decompSdpaFlashCpu",
	},
	{
		Schema: "aten::_scaled_dot_product_fused_attention_overrideable(Tensor query, Tensor key, Tensor value, Tensor? attn_bias=None, float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
		Doc:    "scaled_dot_product_attention with a backend's extra results.",
		Infer:  "inferSdpaFused",
		Interp: "evalSdpa",
		Decomp: "decompSdpaFused",
	},
	{
		Schema: "aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
		Doc:    "Multi-head attention with packed projections.",
		Infer:  "inferNativeMha",
	},
	{
		Schema: "aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
		Doc:    "A whole transformer encoder layer.",
		Infer:  "inferTransformerEncoderLayer",
	},
	{
		Schema: "aten::_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)",
		Doc:    "Splits packed projections into heads, adds the bias and scales the query.",
		Infer:  "inferTransformBiasRescaleQkv",
	},
}
