"""Executes the payloads of ExecuTorch's MLX delegate over MLX's own Python package, one process a program.

A payload is a list of instruction chains over tensor slots (constants, inputs, outputs, mutable buffers, temps: one
numbering, in this order) and value slots (ints, floats, bools). What each node does, and what it refuses, is what the
delegate does: nodes that would abort there raise here.

Frames on stdin/stdout: a little-endian u32 length and that many bytes.

  request 'L'  u32 handle, str graph (JSON of the flatbuffer), u32 n, n times (str name, u64 size, bytes)
  request 'R'  u32 handle, u32 n, values in the order of input_map, u32 m, m times u8 kind and, for tensors, u8 dtype of the
               output that the program expects
  reply        u8 ok; then str message (0) or u32 n, values (1)
  value        u8 kind: 1 tensor (u8 dtype, u8 rank, i64 sizes, u64 size, bytes), 4 int (i64)
"""

import ctypes
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

import mlx.core as mx

# ExecuTorch's ScalarType numbers that the delegate takes, with MLX's types and a numpy type to carry the bytes.
DTYPES = {
    0: (mx.uint8, np.uint8),
    1: (mx.int8, np.int8),
    2: (mx.int16, np.int16),
    3: (mx.int32, np.int32),
    4: (mx.int64, np.int64),
    5: (mx.float16, np.float16),
    6: (mx.float32, np.float32),
    11: (mx.bool_, np.bool_),
    15: (mx.bfloat16, np.uint16),
    28: (mx.uint32, np.uint32),
}
CODES = {mlx_type: code for code, (mlx_type, _) in DTYPES.items()}
INT_MIN, INT_MAX = -(2**31), 2**31 - 1
MAX_BYTES = 4 << 30


class Refused(Exception):
    """What the delegate would not run."""


def dtype_of(code):
    if code not in DTYPES:
        raise Refused(f"element type {code} is not one of the delegate's")
    return DTYPES[code][0]


def from_bytes(data, code, shape):
    want, carrier = DTYPES[code] if code in DTYPES else (dtype_of(code), None)
    flat = np.frombuffer(data, dtype=carrier)
    if flat.size != math.prod(shape):
        raise Refused(f"{len(data)} bytes for a tensor of shape {shape}")
    a = mx.array(flat.reshape(shape))
    return a.view(mx.bfloat16) if want == mx.bfloat16 else a


def to_bytes(a):
    a = mx.contiguous(a)
    if a.dtype == mx.bfloat16:
        a = a.view(mx.uint16)
    mx.eval(a)
    return np.asarray(a).tobytes()


def check_size(shape, dtype, what):
    for d in shape:
        if d <= 0:
            raise Refused(f"{what}: invalid dimension {d}")
    if math.prod(shape) * dtype.size > MAX_BYTES:
        raise Refused(f"{what}: more than 4 GB")


def axis_of(axis, rank, what):
    if not -rank <= axis < rank:
        raise Refused(f"{what}: axis {axis} of rank {rank}")
    return axis % rank


class Graph:
    """A loaded payload: constants, buffers that live from call to call, and the slots of one execution."""

    def __init__(self, graph, constants):
        self.g = graph
        if graph.get("version") and int(graph["version"]) > 1:
            raise Refused(f"payload version {graph['version']}")
        self.num_constants = graph["num_constant_tensors"]
        self.inputs_end = self.num_constants + graph["num_input_tensors"]
        self.outputs_end = self.inputs_end + graph["num_output_tensors"]
        self.buffers_end = self.outputs_end + graph["num_mutable_buffer_tensors"]
        self.num_tensors = self.buffers_end + graph["num_temp_tensors"]
        self.meta = graph["tensor_meta"] or []
        self.tensors = {}
        self.values = {}
        self.lasting = {}  # constants and mutable buffers
        self.cache = {}  # keys and values by layer
        self.in_init = False
        names = {s["slot"]["idx"]: s["name"] for s in graph["named_slots"] or [] if s["slot"]["slot_type"] == "TensorSlot"}
        for tid in range(self.num_constants):
            if tid not in names:
                raise Refused(f"constant {tid} has no name")
            name = names[tid]
            if name not in constants:
                raise Refused(f"the program has no named data {name!r}")
            code, shape = self.static_meta(tid)
            data = constants[name]
            want = math.prod(shape) * dtype_of(code).size
            # The delegate does not compare: it would read past the end.
            if len(data) != want:
                raise Refused(f"constant {name!r}: {len(data)} bytes for shape {shape}, {want} needed")
            self.lasting[tid] = from_bytes(data, code, shape)
        for slot in graph["mutable_buffer_map"] or []:
            if slot["slot_type"] != "TensorSlot":
                raise Refused("a mutable buffer that is no tensor")
            code, shape = self.static_meta(slot["idx"])
            check_size(shape, dtype_of(code), "mutable buffer")
            self.lasting[slot["idx"]] = mx.zeros(shape, dtype_of(code))
        if graph["init_chain_idx"] >= 0:
            self.in_init = True
            self.run_chain(graph["init_chain_idx"])
            self.in_init = False
            mx.eval(list(self.lasting.values()))

    def static_meta(self, tid):
        if tid >= len(self.meta) or self.meta[tid] is None:
            raise Refused(f"tensor {tid} has no meta")
        m = self.meta[tid]
        shape = [d["value"] for d in m["shape"]]
        if any(d < 0 for d in shape):
            raise Refused(f"tensor {tid} has a dynamic shape {shape}")
        return m["scalar_type"], shape

    def execute(self, inputs, outputs):
        """inputs: arrays and ints in order of input_map; outputs: (kind, dtype code) in order of output_map."""
        self.tensors, self.values = {}, {}
        slots = self.g["input_map"] or []
        if len(slots) != len(inputs) or len(self.g["output_map"] or []) != len(outputs):
            raise Refused(f"{len(inputs)} inputs and {len(outputs)} outputs for {len(slots)} and {len(self.g['output_map'] or [])}")
        for slot, v in zip(slots, inputs):
            kind = slot["slot_type"]
            if kind == "TensorSlot":
                tid = slot["idx"]
                if not isinstance(v, mx.array):
                    raise Refused("an int where a tensor is expected")
                if tid < len(self.meta) and self.meta[tid] is not None and dtype_of(self.meta[tid]["scalar_type"]) != v.dtype:
                    raise Refused(f"input {v.dtype}, expected {dtype_of(self.meta[tid]['scalar_type'])}")
                self.set(tid, v)
            elif kind == "IntValueSlot":
                if not isinstance(v, int) or not INT_MIN <= v <= INT_MAX:
                    raise Refused(f"int input {v} does not fit 32 bits")
                self.values[slot["idx"]] = v
            else:
                raise Refused(f"input of kind {kind}")
        self.run_chain(self.g["main_chain_idx"])
        results = []
        for slot, (kind, code) in zip(self.g["output_map"] or [], outputs):
            if slot["slot_type"] == "TensorSlot":
                a = self.get(slot["idx"])
                results.append(a.astype(dtype_of(code)) if kind == 1 else a)
            elif slot["slot_type"] == "IntValueSlot":
                results.append(self.value(slot["idx"]))
            else:
                raise Refused(f"output of kind {slot['slot_type']}")
        mx.eval([r for r in results if isinstance(r, mx.array)] + list(self.lasting.values()))
        self.tensors, self.values = {}, {}
        return results

    def run_chain(self, index):
        chains = self.g["instruction_chains"]
        if not 0 <= index < len(chains):
            raise Refused(f"chain {index} of {len(chains)}")
        for i, instruction in enumerate(chains[index]["instructions"]):
            ((name, node),) = instruction["op"].items()
            run = NODES.get(name)
            if run is None:
                raise Refused(f"node {name} is not known")
            try:
                run(self, node)
            except Refused as e:
                raise Refused(f"chain {index}, instruction {i} {name}: {e}") from None
            except (ValueError, TypeError, RuntimeError, IndexError, OverflowError) as e:
                raise Refused(f"chain {index}, instruction {i} {name}: {type(e).__name__}: {e}") from None

    # Slots.

    def is_buffer(self, tid):
        return self.outputs_end <= tid < self.buffers_end

    def get(self, tid):
        if tid >= self.num_tensors:
            raise Refused(f"tensor {tid} of {self.num_tensors}")
        store = self.lasting if tid < self.num_constants or self.is_buffer(tid) else self.tensors
        if tid not in store:
            raise Refused(f"tensor {tid} is read before it is written")
        return store[tid]

    def set(self, tid, a):
        if tid >= self.num_tensors:
            raise Refused(f"tensor {tid} of {self.num_tensors}")
        if tid < self.num_constants:
            if not self.in_init:
                raise Refused(f"constant {tid} is written outside the init chain")
            self.lasting[tid] = a
        elif self.is_buffer(tid):
            self.lasting[tid] = a
        else:
            self.tensors[tid] = a

    def value(self, vid):
        if vid not in self.values:
            raise Refused(f"value {vid} is read before it is written")
        return self.values[vid]

    # Fields of nodes.

    def t(self, ref):
        return self.get(ref["idx"])

    def opt(self, ref):
        return None if ref is None else self.get(ref["idx"])

    def put(self, ref, a):
        self.set(ref["idx"], a)

    def put_value(self, ref, v):
        self.values[ref["idx"]] = v

    def int(self, x):
        if x["is_vid"]:
            v = self.value(x["vid"]["idx"])
            if isinstance(v, bool) or not isinstance(v, int):
                raise Refused(f"value {x['vid']['idx']} is no int")
            return v
        return max(INT_MIN, min(INT_MAX, x["literal"]))

    def ints(self, xs):
        return [self.int(x) for x in xs or []]

    def float(self, x):
        if x["is_vid"]:
            return float(np.float32(self.value(x["vid"]["idx"])))
        return float(np.float32(float(x["literal"])))


def number(x):
    """A float of the JSON, where non-finite ones are text."""
    return float(x)


NODES = {}


def node(f):
    NODES["".join({"rms": "RMS", "arange": "ARange", "logaddexp": "LogAddExp", "logsumexp": "LogSumExp"}.get(p, p.capitalize())
                  for p in f.__name__.strip("_").split("_")) + "Node"] = f
    return f


def unary(name, f):
    NODES[name + "Node"] = lambda s, n: s.put(n["out"], f(s.t(n["x"])))


def binary(name, f):
    NODES[name + "Node"] = lambda s, n: s.put(n["out"], f(s.t(n["a"]), s.t(n["b"])))


for _name, _f in {
    "IdCopy": lambda x: x, "Silu": lambda x: x * mx.sigmoid(x), "Sigmoid": mx.sigmoid, "Tanh": mx.tanh, "Rsqrt": mx.rsqrt,
    "Log": mx.log, "Contiguous": mx.contiguous, "LogicalNot": mx.logical_not, "BitwiseInvert": mx.bitwise_invert,
    "Floor": mx.floor, "Ceil": mx.ceil, "Square": mx.square, "Exp": mx.exp, "Sin": mx.sin, "Cos": mx.cos, "Tan": mx.tan,
    "Arcsin": mx.arcsin, "Arccos": mx.arccos, "Arctan": mx.arctan, "Sinh": mx.sinh, "Cosh": mx.cosh, "Arcsinh": mx.arcsinh,
    "Arccosh": mx.arccosh, "Arctanh": mx.arctanh, "Log2": mx.log2, "Log10": mx.log10, "Log1p": mx.log1p, "Erf": mx.erf,
    "Expm1": mx.expm1, "Reciprocal": mx.reciprocal, "Sqrt": mx.sqrt, "Abs": mx.abs, "Neg": mx.negative, "Sign": mx.sign,
    "Trunc": mx.trunc,
}.items():
    unary(_name, _f)

for _name, _f in {
    "Add": mx.add, "Multiply": mx.multiply, "Divide": mx.divide, "Subtract": mx.subtract, "Maximum": mx.maximum,
    "Minimum": mx.minimum, "Less": mx.less, "LessEqual": mx.less_equal, "Greater": mx.greater,
    "GreaterEqual": mx.greater_equal, "Equal": mx.equal, "NotEqual": mx.not_equal, "LogicalAnd": mx.logical_and,
    "LogicalOr": mx.logical_or, "BitwiseAnd": mx.bitwise_and, "BitwiseOr": mx.bitwise_or, "BitwiseXor": mx.bitwise_xor,
    "Atan2": mx.arctan2, "LogAddExp": mx.logaddexp, "Remainder": mx.remainder, "Power": mx.power,
}.items():
    binary(_name, _f)


def reduction(name, f):
    def run(s, n):
        axes = n["axes"] or None
        s.put(n["out"], f(s.t(n["x"]), axis=axes, keepdims=n["keepdims"]))

    NODES[name + "Node"] = run


for _name, _f in {"Sum": mx.sum, "Mean": mx.mean, "Prod": mx.prod, "Max": mx.max, "Min": mx.min, "Median": mx.median,
                  "Any": mx.any, "All": mx.all}.items():
    reduction(_name, _f)


@node
def noop(s, n):
    pass


@node
def addmm(s, n):
    a, b, c = s.t(n["mat1"]), s.t(n["mat2"]), s.opt(n["bias"])
    # Without a bias the factors are not looked at.
    s.put(n["out"], a @ b if c is None else mx.addmm(c, a, b, alpha=number(n["alpha"]), beta=number(n["beta"])))


@node
def item_int(s, n):
    x = s.t(n["x"])
    if x.size != 1:
        raise Refused(f"shape {x.shape} is not one element")
    if x.dtype not in (mx.int32, mx.int64, mx.uint32):
        raise Refused(f"{x.dtype} would be read as the bits of an int32")
    v = int(x.item()) & 0xFFFFFFFF
    s.put_value(n["out"], v - (1 << 32) if v > INT_MAX else v)


@node
def expand_dims(s, n):
    s.put(n["out"], mx.expand_dims(s.t(n["x"]), n["axis"]))


@node
def tile(s, n):
    s.put(n["out"], mx.tile(s.t(n["x"]), s.ints(n["reps"])))


@node
def take_along_axis(s, n):
    s.put(n["out"], mx.take_along_axis(s.t(n["x"]), s.t(n["indices"]), axis=n["axis"]))


@node
def take(s, n):
    x, index = s.t(n["x"]), n["index"]
    axis = axis_of(n["axis"], x.ndim, "take")
    if index["kind"] == 2:
        s.put(n["out"], mx.take(x, s.t(index["tid"]), axis=axis))
        return
    if index["kind"] == 1:
        i = s.value(index["vid"]["idx"])
    elif index["kind"] == 0:
        i = max(INT_MIN, min(INT_MAX, index["literal"]))
    else:
        raise Refused(f"index of kind {index['kind']}")
    s.put(n["out"], mx.take(x, axis_of(i, x.shape[axis], "index"), axis=axis))


@node
def rms_norm(s, n):
    s.put(n["out"], mx.fast.rms_norm(s.t(n["x"]), s.opt(n["weight"]), number(n["eps"])))


@node
def layer_norm(s, n):
    s.put(n["out"], mx.fast.layer_norm(s.t(n["x"]), s.opt(n["weight"]), s.opt(n["bias"]), number(n["eps"])))


@node
def rope(s, n):
    freqs = s.opt(n["freqs"])
    offset = s.value(n["offset"]["vid"]["idx"]) if n["offset"]["is_vid"] else s.t(n["offset"]["tid"])
    s.put(n["out"], mx.fast.rope(
        s.t(n["x"]), n["dims"], traditional=n["traditional"], base=None if freqs is not None else number(n["base"]),
        scale=number(n["scale"]), offset=offset, freqs=freqs))


@node
def sdpa(s, n):
    q, k, v, mask = s.t(n["q"]), s.t(n["k"]), s.t(n["v"]), s.opt(n["mask"])
    if mask is not None and n["causal"]:
        raise Refused("a mask and causal at once")
    if mask is not None and mask.dtype not in (mx.bool_, q.dtype):
        mask = mask.astype(q.dtype)
    s.put(n["out"], mx.fast.scaled_dot_product_attention(q, k, v, scale=number(n["scale"]), mask="causal" if n["causal"] else mask))


@node
def update_and_attend(s, n):
    # The cache is the application's. Here it keeps everything from position 0 on, as long as the program is loaded.
    q, k, v, position = s.t(n["q"]), s.t(n["k"]), s.t(n["v"]), s.t(n["position"])
    if n["layer_id"] is None or n["scale"] is None:
        raise Refused("no layer or no scale")
    if position.dtype not in (mx.int32, mx.int64):
        raise Refused(f"a position of {position.dtype}")
    start = int(position.flatten()[0].item())
    old = s.cache.get(n["layer_id"])
    if start:
        if old is None or old[0].shape[2] < start:
            raise Refused(f"position {start} is beyond what the cache holds")
        k, v = (mx.concatenate([c[:, :, :start], x.astype(c.dtype)], axis=2) for c, x in zip(old, (k, v)))
    s.cache[n["layer_id"]] = (k, v)
    mask = "causal" if q.shape[2] > 1 else None
    out = mx.fast.scaled_dot_product_attention(q, k.astype(q.dtype), v.astype(q.dtype), scale=number(n["scale"]), mask=mask)
    if n["out_dtype"] is not None:
        out = out.astype(dtype_of(n["out_dtype"]))
    s.put(n["out"], out)


def int_node(name, f):
    def run(s, n):
        a, b = s.int(n["a"]), s.int(n["b"])
        v = f(a, b)
        if not INT_MIN <= v <= INT_MAX:
            raise Refused(f"{a}, {b}: the result does not fit 32 bits")
        s.put_value(n["out"], v)

    NODES[name + "IntNode"] = run


def _divisor(f):
    def g(a, b):
        if b == 0:
            raise Refused("division by zero")
        return f(a, b)

    return g


int_node("Add", lambda a, b: a + b)
int_node("Subtract", lambda a, b: a - b)
int_node("Multiply", lambda a, b: a * b)
int_node("FloorDivide", _divisor(lambda a, b: a // b))
int_node("Mod", _divisor(lambda a, b: a % b))


@node
def sym_size(s, n):
    x = s.t(n["a"])
    s.put_value(n["out"], x.shape[axis_of(n["dim"], x.ndim, "size")])


def conv(name, f, dims, transposed):
    suffixes = {1: [""], 2: ["_h", "_w"], 3: ["_d", "_h", "_w"]}[dims]

    def run(s, n):
        def pick(field):
            v = [n[field + x] for x in suffixes]
            return v[0] if dims == 1 else tuple(v)

        args = dict(stride=pick("stride"), padding=pick("padding"), dilation=pick("dilation"), groups=n["groups"])
        if transposed:
            args["output_padding"] = pick("output_padding")
        s.put(n["out"], f(s.t(n["x"]), s.t(n["w"]), **args))

    NODES[name] = run


conv("Conv1DNode", mx.conv1d, 1, False)
conv("Conv2DNode", mx.conv2d, 2, False)
conv("Conv3DNode", mx.conv3d, 3, False)
conv("ConvTranspose1DNode", mx.conv_transpose1d, 1, True)
conv("ConvTranspose2DNode", mx.conv_transpose2d, 2, True)
conv("ConvTranspose3DNode", mx.conv_transpose3d, 3, True)


@node
def gelu(s, n):
    x = s.t(n["x"])

    def c(v):
        return mx.array(v, dtype=x.dtype)

    if n["approximate"] == "tanh":
        inner = c(0.7978845608) * (x + c(0.044715) * (x * (x * x)))
        s.put(n["out"], c(0.5) * (x * (c(1.0) + mx.tanh(inner))))
    else:
        s.put(n["out"], c(0.5) * (x * (c(1.0) + mx.erf(c(0.7071067812) * x))))


@node
def arange(s, n):
    start, stop, step = s.int(n["start"]), s.int(n["stop"]), s.int(n["step"])
    if step == 0:
        raise Refused("step 0")
    dtype = mx.int32 if n["scalar_type"] is None else dtype_of(n["scalar_type"])
    check_size([max(0, -(-(stop - start) // step))], dtype, "arange")
    s.put(n["out"], mx.arange(start, stop, step, dtype=dtype))


@node
def squeeze(s, n):
    x = s.t(n["x"])
    if not n["dims"]:
        s.put(n["out"], mx.squeeze(x))
        return
    dims = [d for d in n["dims"] if -x.ndim <= d < x.ndim and x.shape[d] == 1]
    s.put(n["out"], mx.squeeze(x, dims) if dims else x)


@node
def split(s, n):
    x, sizes, outs = s.t(n["x"]), s.ints(n["sizes"]), n["outs"]
    axis = axis_of(n["axis"], x.ndim, "split")
    if len(sizes) == 1:
        if sizes[0] <= 0:
            raise Refused(f"size {sizes[0]}")
        at = list(range(sizes[0], x.shape[axis], sizes[0]))
    else:
        at = np.cumsum(sizes[:-1]).tolist()
    parts = mx.split(x, at, axis=axis)
    if len(parts) != len(outs):
        raise Refused(f"{len(parts)} parts for {len(outs)} outputs")
    for o, p in zip(outs, parts):
        s.put(o, p)


@node
def softmax(s, n):
    s.put(n["out"], mx.softmax(s.t(n["x"]), axis=n["axis"], precise=n["precise"]))


@node
def broadcast_to(s, n):
    x, shape = s.t(n["x"]), s.ints(n["shape"])
    lead = len(shape) - x.ndim
    for i, d in enumerate(shape):
        if d == -1 and 0 <= i - lead < x.ndim:
            shape[i] = x.shape[i - lead]
    s.put(n["out"], mx.broadcast_to(x, shape))


@node
def pad(s, n):
    x, width = s.t(n["x"]), s.ints(n["pad_width"])
    if len(width) % 2:
        raise Refused(f"{len(width)} widths")
    pairs = [(width[i], width[i + 1]) for i in range(0, len(width), 2)]
    if n["mode"] == "constant":
        s.put(n["out"], mx.pad(x, pairs, mode="constant", constant_values=mx.array(number(n["constant_value"]))))
    elif n["mode"] == "edge":
        s.put(n["out"], mx.pad(x, pairs, mode="edge"))
    else:
        raise Refused(f"mode {n['mode']!r}")


@node
def where(s, n):
    s.put(n["out"], mx.where(s.t(n["condition"]), s.t(n["x"]), s.t(n["y"])))


@node
def reshape(s, n):
    s.put(n["out"], mx.reshape(s.t(n["x"]), s.ints(n["shape"])))


@node
def transpose(s, n):
    s.put(n["out"], mx.transpose(s.t(n["x"]), n["perm"]))


@node
def as_strided(s, n):
    x, shape, strides = s.t(n["x"]), s.ints(n["shape"]), s.ints(n["strides"])
    ends = [(d - 1) * st for d, st in zip(shape, strides)]
    low = n["offset"] + sum(min(0, e) for e in ends)
    high = n["offset"] + sum(max(0, e) for e in ends)
    if all(shape) and (low < 0 or high >= x.size):
        raise Refused(f"elements {low} to {high} of {x.size}")
    s.put(n["out"], mx.as_strided(x, shape, strides, n["offset"]))


@node
def gather(s, n):
    x, axes, sizes = s.t(n["x"]), n["axes"] or [], n["slice_sizes"] or []
    if len(n["indices"]) != len(axes) or len(sizes) != x.ndim:
        raise Refused(f"{len(n['indices'])} indices for axes {axes}, slice sizes {sizes} of rank {x.ndim}")
    if any(not 0 <= a < x.ndim for a in axes):
        raise Refused(f"axes {axes} of rank {x.ndim}")
    check_size(sizes, x.dtype, "gather")
    if any(k > d for k, d in zip(sizes, x.shape)):
        raise Refused(f"slice sizes {sizes} of shape {x.shape}")
    indices = [s.t(t) for t in n["indices"]]
    batch = np.broadcast_shapes(*[tuple(i.shape) for i in indices]) if indices else ()
    full = []
    for d in range(x.ndim):
        along = mx.arange(sizes[d]).reshape([1] * len(batch) + [sizes[d] if e == d else 1 for e in range(x.ndim)])
        if d in axes:
            i = indices[axes.index(d)].astype(mx.int64)
            i = mx.where(i < 0, i + x.shape[d], i)
            along = along + i.reshape(list(i.shape) + [1] * x.ndim)
        full.append(along)
    s.put(n["out"], mx.broadcast_to(x[tuple(full)], list(batch) + list(sizes)))


@node
def scatter_add(s, n):
    x, indices, updates = s.t(n["x"]), s.t(n["indices"]), s.t(n["updates"])
    axis = axis_of(n["axis"], x.ndim, "scatter_add")
    if indices.ndim != x.ndim:
        raise Refused(f"indices of rank {indices.ndim} for a tensor of rank {x.ndim}")
    at = [mx.arange(d).reshape([d if e == k else 1 for e in range(x.ndim)]) for k, d in enumerate(indices.shape)]
    at[axis] = indices
    s.put(n["out"], x.at[tuple(at)].add(updates))


def spans(rank, axis, start, stop, step):
    return tuple(slice(start, stop, step) if d == axis else slice(None) for d in range(rank))


@node
def slice_(s, n):
    x = s.t(n["x"])
    axis = axis_of(s.int(n["axis"]), x.ndim, "slice")
    if n["step"] == 0:
        raise Refused("step 0")
    s.put(n["out"], x[spans(x.ndim, axis, s.int(n["start"]), s.int(n["stop"]), n["step"])])


@node
def as_type(s, n):
    s.put(n["out"], s.t(n["x"]).astype(dtype_of(n["scalar_type"])))


@node
def quantized_matmul(s, n):
    s.put(n["out"], mx.quantized_matmul(
        s.t(n["x"]), s.t(n["w"]), scales=s.t(n["scales"]), biases=s.opt(n["biases"]), transpose=n["transpose"],
        group_size=n["group_size"], bits=n["bits"], mode=n["mode"]))


def sorted_indices(s, n):
    return bool(s.int(n["sorted_indices_flag"])) if n["sorted_indices_flag"] is not None else n["sorted_indices"]


@node
def gather_mm(s, n):
    # The CPU has this in single precision alone.
    a, b = s.t(n["a"]), s.t(n["b"])
    half = a.dtype
    if half in (mx.float16, mx.bfloat16):
        a, b = a.astype(mx.float32), b.astype(mx.float32)
    out = mx.gather_mm(a, b, s.opt(n["lhs_indices"]), s.opt(n["rhs_indices"]), sorted_indices=sorted_indices(s, n))
    s.put(n["out"], out.astype(half))


@node
def gather_qmm(s, n):
    s.put(n["out"], mx.gather_qmm(
        s.t(n["x"]), s.t(n["w"]), scales=s.t(n["scales"]), biases=s.opt(n["biases"]), lhs_indices=s.opt(n["lhs_indices"]),
        rhs_indices=s.opt(n["rhs_indices"]), transpose=n["transpose"], group_size=n["group_size"], bits=n["bits"], mode=n["mode"],
        sorted_indices=sorted_indices(s, n)))


@node
def dequantize(s, n):
    s.put(n["out"], mx.dequantize(
        s.t(n["w"]), scales=s.t(n["scales"]), biases=s.opt(n["biases"]), group_size=n["group_size"], bits=n["bits"], mode=n["mode"],
        global_scale=s.opt(n["global_scale"]), dtype=None if n["dtype"] is None else dtype_of(n["dtype"])))


@node
def concatenate(s, n):
    s.put(n["out"], mx.concatenate([s.t(t) for t in n["tensors"]], axis=n["axis"]))


@node
def stack(s, n):
    s.put(n["out"], mx.stack([s.t(t) for t in n["tensors"]], axis=n["axis"]))


def filled(shape, v, dtype):
    # mx.full takes a dtype as a hint that a float value overrides.
    return mx.broadcast_to(mx.array(v, dtype=mx.float32).astype(dtype), shape)


@node
def full(s, n):
    shape, dtype = s.ints(n["shape"]), dtype_of(n["scalar_type"])
    check_size(shape, dtype, "full")
    s.put(n["out"], filled(shape, s.float(n["v"]), dtype))


@node
def full_like(s, n):
    x = s.t(n["x"])
    dtype = x.dtype if n["scalar_type"] is None else dtype_of(n["scalar_type"])
    s.put(n["out"], filled(x.shape, s.float(n["v"]), dtype))


@node
def argmax(s, n):
    s.put(n["out"], mx.argmax(s.t(n["x"]), axis=n["axis"], keepdims=n["keepdims"]))


@node
def argmin(s, n):
    s.put(n["out"], mx.argmin(s.t(n["x"]), axis=n["axis"], keepdims=n["keepdims"]))


def written(s, n):
    """The tensor an update node changes; a constant cannot be one."""
    if n["dst"]["idx"] < s.num_constants:
        raise Refused("a constant is changed")
    return s.t(n["dst"])


def update(dst, at, upd):
    out = mx.array(dst)
    out[at] = upd.astype(dst.dtype)
    return out


@node
def slice_update(s, n):
    dst, upd = written(s, n), s.t(n["update"])
    axis = axis_of(s.int(n["axis"]), dst.ndim, "slice_update")
    size = dst.shape[axis]

    def bound(v):
        return max(0, min(v + size if v < 0 else v, size))

    start, stop = bound(s.int(n["start"])), bound(s.int(n["stop"]))
    if n["step"] < 1:
        raise Refused(f"step {n['step']}")
    s.put(n["out"], dst if start == stop else update(dst, spans(dst.ndim, axis, start, stop, n["step"]), upd))


@node
def index_copy(s, n):
    dst, upd, indices = written(s, n), s.t(n["update"]), s.t(n["indices"])
    if indices.ndim != 1 or indices.dtype != mx.int64:
        raise Refused(f"indices {indices.dtype}{list(indices.shape)}, want int64 of rank 1")
    axis = axis_of(n["axis"], dst.ndim, "index_copy")
    size = dst.shape[axis]
    out = dst
    for i, raw in enumerate(indices.tolist()):
        at = raw + size if raw < 0 else raw
        if not 0 <= at < size:
            raise Refused(f"index {raw} of {size}")
        out = update(out, spans(dst.ndim, axis, at, at + 1, 1), upd[spans(upd.ndim, axis, i, i + 1, 1)])
    s.put(n["out"], out)


@node
def tri(s, n):
    rows, cols, dtype = s.int(n["n"]), s.int(n["m"]), dtype_of(n["scalar_type"])
    check_size([rows, cols], dtype, "tri")
    s.put(n["out"], mx.tri(rows, cols, n["k"], dtype=dtype))


@node
def tril(s, n):
    s.put(n["out"], mx.tril(s.t(n["x"]), n["k"]))


@node
def triu(s, n):
    s.put(n["out"], mx.triu(s.t(n["x"]), n["k"]))


@node
def clip(s, n):
    s.put(n["out"], mx.clip(s.t(n["x"]), s.opt(n["a_min"]), s.opt(n["a_max"])))


@node
def cumsum(s, n):
    s.put(n["out"], mx.cumsum(s.t(n["x"]), n["axis"], reverse=n["reverse"], inclusive=n["inclusive"]))


@node
def repeat(s, n):
    x, times = s.t(n["x"]), s.int(n["repeats"])
    if times < 0:
        raise Refused(f"{times} repeats")
    axis = axis_of(n["axis"], x.ndim, "repeat")
    check_size([d * times if k == axis else d for k, d in enumerate(x.shape)], x.dtype, "repeat")
    s.put(n["out"], mx.repeat(x, times, axis=axis))


@node
def sort(s, n):
    s.put(n["out"], mx.sort(s.t(n["x"]), axis=n["axis"]))


@node
def argsort(s, n):
    s.put(n["out"], mx.argsort(s.t(n["x"]), axis=n["axis"]))


@node
def partition(s, n):
    s.put(n["out"], mx.partition(s.t(n["x"]), s.int(n["kth"]), axis=n["axis"]))


@node
def arg_partition(s, n):
    s.put(n["out"], mx.argpartition(s.t(n["x"]), s.int(n["kth"]), axis=n["axis"]))


@node
def roll(s, n):
    s.put(n["out"], mx.roll(s.t(n["x"]), tuple(s.ints(n["shift"])), tuple(n["axes"])))


@node
def flip(s, n):
    s.put(n["out"], mx.flip(s.t(n["x"]), n["axes"]))


@node
def round_(s, n):
    s.put(n["out"], mx.round(s.t(n["x"]), n["decimals"]))


@node
def floor_divide(s, n):
    a, b = s.t(n["a"]), s.t(n["b"])
    if mx.issubdtype(a.dtype, mx.inexact):
        s.put(n["out"], mx.floor_divide(a, b))
        return
    # MLX divides integers towards zero; the delegate corrects the quotient as floor division needs it.
    zero = mx.array(0, dtype=a.dtype)
    adjust = mx.logical_and(mx.remainder(a, b) != zero, (a < zero) != (b < zero))
    s.put(n["out"], mx.divide(a, b) - adjust.astype(a.dtype))


@node
def logsumexp(s, n):
    s.put(n["out"], mx.logsumexp(s.t(n["x"]), axis=list(n["axes"] or []), keepdims=n["keepdims"]))


def spread(name, f):
    def run(s, n):
        s.put(n["out"], f(s.t(n["x"]), axis=n["axes"] or None, keepdims=n["keepdims"], ddof=n["ddof"]))

    NODES[name + "Node"] = run


spread("Var", mx.var)
spread("Std", mx.std)


@node
def scan(s, n):
    axis = n["scan_axis"]
    steps = s.t(n["originals"][0]).shape[axis]
    collected = [[] for _ in n["outputs"]]
    for t in range(steps):
        for whole, part in zip(n["originals"], n["sliced"]):
            s.put(part, mx.take(s.t(whole), t, axis=axis))
        s.run_chain(n["body_chain_idx"])
        for into, o in zip(collected, n["outputs"]):
            into.append(s.t(o))
    for o, parts in zip(n["outputs"], collected):
        s.put(o, mx.stack(parts, axis=axis))


@node
def if_(s, n):
    s.run_chain(n["then_chain_idx"] if s.int(n["cond"]) != 0 else n["else_chain_idx"])


def threefry(key, count):
    """Threefry-2x32 of 20 rounds, the generator of mlx.random."""
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    ks = (key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA))
    x, y = count[0] + ks[0], count[1] + ks[1]
    for i in range(5):
        for r in rotations[i % 2]:
            x = x + y
            y = (y << np.uint32(r)) | (y >> np.uint32(32 - r))
            y = y ^ x
        x = x + ks[(i + 1) % 3]
        y = y + ks[(i + 2) % 3] + np.uint32(i + 1)
    return x, y


def random_words(seed, words):
    """The 32-bit words mlx.random draws for one key."""
    key = np.array([(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF], dtype=np.uint32)
    half, odd = words // 2, words % 2
    out = np.empty(words, dtype=np.uint32)
    with np.errstate(over="ignore"):
        n = half + odd
        first = np.arange(n, dtype=np.uint32)
        second = first + np.uint32(n)
        if odd:
            second[-1] = 0
        a, b = threefry(key, (first, second))
    out[:n] = a
    out[n:] = b[:half]
    return out


@node
def random_bits(s, n):
    shape, width = s.ints(n["shape"]), n["width"]
    if width not in (1, 2, 4):
        raise Refused(f"width {width}")
    dtype = {1: np.uint8, 2: np.uint16, 4: np.uint32}[width]
    count = math.prod(shape)
    check_size(shape, mx.uint32, "random bits")
    seed = int.from_bytes(os.urandom(8), "little") if n["seed"] is None else s.value(n["seed"]["idx"])
    words = random_words(seed & 0xFFFFFFFFFFFFFFFF, -(-count * width // 4))
    s.put(n["out"], mx.array(words.view(dtype)[:count].reshape(shape)))


# Enough of Metal to run a kernel as C++: thread by thread, one after the other, so without what threads do together.
SHIM = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
typedef unsigned int uint;
#define constant const
#define device
#define thread
#define METAL_FUNC inline
static inline float half_to_float(uint16_t h) {
  uint32_t sign = (h & 0x8000u) << 16, e = h >> 10 & 31, m = h & 1023, u;
  float f;
  if (e == 0) { f = std::ldexp(float(m), -24); return sign ? -f : f; }
  u = sign | (e == 31 ? 0x7f800000u | m << 13 : (e + 112) << 23 | m << 13);
  std::memcpy(&f, &u, 4);
  return f;
}
static inline uint16_t float_to_half(float f) {
  uint32_t u; std::memcpy(&u, &f, 4);
  uint16_t sign = u >> 16 & 0x8000;
  if (f != f) return sign | 0x7e00;
  float a = std::fabs(f);
  if (a >= 65520.0f) return sign | 0x7c00;
  int e = a == 0 ? -14 : std::max(std::ilogb(a), -14);
  float m = std::nearbyint(std::ldexp(a, 10 - e));
  if (m >= 2048) { m /= 2; ++e; }
  return sign | (m < 1024 ? uint16_t(m) : uint16_t((e + 15) << 10 | (int(m) - 1024)));
}
static inline float bfloat_to_float(uint16_t h) { uint32_t u = uint32_t(h) << 16; float f; std::memcpy(&f, &u, 4); return f; }
static inline uint16_t float_to_bfloat(float f) {
  uint32_t u; std::memcpy(&u, &f, 4);
  return f != f ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
template <float (*From)(uint16_t), uint16_t (*To)(float)>
struct half_type {
  uint16_t bits;
  half_type() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  half_type(T x) : bits(To(float(x))) {}
  operator float() const { return From(bits); }
};
typedef half_type<half_to_float, float_to_half> float16_t;
typedef half_type<bfloat_to_float, float_to_bfloat> bfloat16_t;
typedef float16_t half;
typedef bfloat16_t bfloat;
struct uint3 { uint x, y, z; };
namespace metal {
#define LATHE_FUNCTIONS(F) F(exp) F(log) F(log2) F(sqrt) F(sin) F(cos) F(tan) F(tanh) F(sinh) F(cosh) F(floor) F(ceil) F(trunc) F(fabs)
#define LATHE_FUNCTION(f) inline float f(float x) { return std::f(x); }
LATHE_FUNCTIONS(LATHE_FUNCTION)
inline float rint(float x) { return std::nearbyint(x); }
inline float rsqrt(float x) { return 1 / std::sqrt(x); }
inline float abs(float x) { return std::fabs(x); }
inline float pow(float x, float y) { return std::pow(x, y); }
inline float fmax(float x, float y) { return std::fmax(x, y); }
inline float fmin(float x, float y) { return std::fmin(x, y); }
namespace precise { LATHE_FUNCTIONS(LATHE_FUNCTION) inline float pow(float x, float y) { return std::pow(x, y); } }
}
using namespace metal;
"""
CPP_TYPES = {
    mx.bool_: "bool", mx.uint8: "uint8_t", mx.int8: "int8_t", mx.int16: "int16_t", mx.int32: "int32_t", mx.uint32: "uint32_t",
    mx.int64: "int64_t", mx.float16: "float16_t", mx.bfloat16: "bfloat16_t", mx.float32: "float",
}
KERNELS = {}  # compiled ones by source


def kernel_library(source):
    lib = KERNELS.get(source)
    if lib is None:
        with tempfile.TemporaryDirectory() as d:
            with open(os.path.join(d, "k.cpp"), "w") as f:
                f.write(source)
            out = os.path.join(d, "k.so")
            done = subprocess.run(["c++", "-std=c++17", "-shared", "-fPIC", "-o", out, f.name], capture_output=True, text=True)
            if done.returncode:
                raise Refused("the kernel does not compile as C++: " + done.stderr[:2000])
            lib = KERNELS[source] = ctypes.CDLL(out)
    return lib


@node
def metal_kernel(s, n):
    """Runs the source as C++, in a function such as MLX puts around it; needs a compiler, and no Apple GPU."""
    if shutil.which("c++") is None:
        raise Refused(f"kernel {n['name']!r} is Metal source: it needs Apple's GPU, or a C++ compiler here")
    if not n["inputs"] or not n["outputs"]:
        raise Refused("a kernel without inputs or outputs")
    if n["atomic_outputs"] or not n["ensure_row_contiguous"]:
        raise Refused("a kernel with atomic outputs, or inputs of any layout")
    source, header = n["source"], n["header"] or ""
    params, args, keep = [], [], []

    def pass_array(a, c_type):
        keep.append(a)
        params.append(c_type)
        args.append(a.ctypes.data_as(ctypes.c_void_p))

    for tid, name in zip(n["inputs"], n["input_names"], strict=True):
        t = mx.contiguous(s.t(tid))
        if t.dtype not in CPP_TYPES:
            raise Refused(f"kernel input of {t.dtype}")
        a = np.frombuffer(to_bytes(t), dtype=np.uint8)
        # A tensor without dimensions is its element.
        pass_array(a, f"const {CPP_TYPES[t.dtype]}{'*' if t.ndim else '&'} {name}")
        strides = [math.prod(t.shape[d + 1 :]) for d in range(t.ndim)]
        pass_array(np.array(t.shape or (0,), dtype=np.int32), f"const int* {name}_shape")
        pass_array(np.array(strides or (0,), dtype=np.int64), f"const int64_t* {name}_strides")
        header += f"\n#define {name}_ndim {t.ndim}"
    outs, flat = [], s.ints(n["output_shapes_flat"])
    for tid, name, rank, code in zip(n["outputs"], n["output_names"], n["output_shape_lengths"], n["output_dtypes"], strict=True):
        shape, flat, dtype = flat[:rank], flat[rank:], dtype_of(code)
        check_size(shape, dtype, "kernel output")
        a = np.full(math.prod(shape) * dtype.size, 0xA5, dtype=np.uint8)
        if n["init_value"] is not None:
            a[:] = np.frombuffer(to_bytes(filled(shape, n["init_value"], dtype)), dtype=np.uint8)
        pass_array(a, f"{CPP_TYPES[dtype]}* {name}")
        outs.append((tid, a, code, shape))
    for name, kind, value in zip(n["template_arg_names"] or [], n["template_arg_kinds"] or [], n["template_arg_values"] or [], strict=True):
        text = CPP_TYPES[dtype_of(value)] if kind == 2 else str(bool(value)).lower() if kind == 1 else str(value)
        header += f"\n#define {name} {text}"
    grid, group = s.ints(n["grid"]), s.ints(n["threadgroup"])
    if len(grid) != 3 or len(group) != 3 or min(grid + group) < 1:
        raise Refused(f"a kernel's grid of {grid} in groups of {group}")
    at = "uint3 thread_position_in_grid, uint3 threads_per_grid, uint3 threads_per_threadgroup, uint3 thread_position_in_threadgroup, uint3 threadgroup_position_in_grid"
    names = [p.split()[-1] for p in params]
    text = f"""#include <algorithm>
{SHIM}
{header}
static void kernel({", ".join(params)}, {at}) {{
{source}
}}
extern "C" void run_(const uint32_t* grid_, const uint32_t* group_, {", ".join(params)}) {{
  for (uint z_ = 0; z_ < grid_[2]; ++z_) for (uint y_ = 0; y_ < grid_[1]; ++y_) for (uint x_ = 0; x_ < grid_[0]; ++x_)
    kernel({", ".join(names)}, {{x_, y_, z_}}, {{grid_[0], grid_[1], grid_[2]}}, {{group_[0], group_[1], group_[2]}},
      {{x_ % group_[0], y_ % group_[1], z_ % group_[2]}}, {{x_ / group_[0], y_ / group_[1], z_ / group_[2]}});
}}
"""
    sizes = [np.array(v, dtype=np.uint32) for v in (grid, group)]
    kernel_library(text).run_(*(a.ctypes.data_as(ctypes.c_void_p) for a in sizes), *args)
    for tid, a, code, shape in outs:
        s.put(tid, from_bytes(a.tobytes(), code, shape))


class Reader:
    def __init__(self, b):
        self.b, self.i = b, 0

    def get(self, fmt):
        v = struct.unpack_from("<" + fmt, self.b, self.i)
        self.i += struct.calcsize("<" + fmt)
        return v[0]

    def raw(self, n):
        self.i += n
        return self.b[self.i - n : self.i]

    def str(self):
        return str(self.raw(self.get("I")), "utf-8")

    def value(self):
        kind = self.get("B")
        if kind == 4:
            return self.get("q")
        code, rank = self.get("B"), self.get("B")
        shape = [self.get("q") for _ in range(rank)]
        return from_bytes(self.raw(self.get("Q")), code, shape)


def value_bytes(v):
    if isinstance(v, int):
        return struct.pack("<Bq", 4, v)
    if v.dtype not in CODES:
        raise Refused(f"output of type {v.dtype}")
    data = to_bytes(v)
    return struct.pack(f"<BBB{v.ndim}qQ", 1, CODES[v.dtype], v.ndim, *v.shape, len(data)) + data


def handle(graphs, request):
    r = Reader(request)
    command = r.get("c")
    key = r.get("I")
    if command == b"L":
        graph = json.loads(r.str())
        constants = {}
        for _ in range(r.get("I")):
            name = r.str()
            constants[name] = r.raw(r.get("Q"))
        graphs[key] = Graph(graph, constants)
        return struct.pack("<I", 0)
    inputs = [r.value() for _ in range(r.get("I"))]
    wanted = []
    for _ in range(r.get("I")):
        kind = r.get("B")
        wanted.append((kind, r.get("B") if kind == 1 else 0))
    out = graphs[key].execute(inputs, wanted)
    return struct.pack("<I", len(out)) + b"".join(value_bytes(v) for v in out)


def main():
    if sys.argv[1:] == ["--nodes"]:
        print("\n".join(sorted(NODES)))
        return
    mx.set_default_device(mx.cpu)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    graphs = {}
    while len(head := sys.stdin.buffer.read(4)) == 4:
        request = sys.stdin.buffer.read(struct.unpack("<I", head)[0])
        try:
            reply = b"\1" + handle(graphs, memoryview(request))
        except (Refused, RuntimeError, ValueError) as e:
            # What MLX finds wrong when it computes comes as a RuntimeError.
            text = str(e).encode()
            reply = b"\0" + struct.pack("<I", len(text)) + text
        replies.write(struct.pack("<I", len(reply)) + reply)
        replies.flush()


if __name__ == "__main__":
    main()
