"""Measures the stock runtime's kernels against PyTorch, for the rows of ops/table/kernels.go.

  python probe.py RUNNER > report.tsv          needs torch with expecttest (its operator samples), and the runner

Operator samples of PyTorch's own tests are run under a dispatch mode; every ATen call that an out-variant kernel serves is
replayed on the kernel, as it is and in four variations: operands in channels-last order, one operand of another type,
special float values, and 8- to 64-bit unsigned, 8-bit float and complex types. A line: kernel, operand types, variation,
outcome (ok, wrong, the runtime's error, abort), detail, arguments.
"""

import collections
import itertools
import struct
import subprocess
import sys
import tempfile
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

CODES = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6,
    torch.float64: 7, torch.complex32: 8, torch.complex64: 9, torch.complex128: 10, torch.bool: 11, torch.bfloat16: 15,
    torch.float8_e5m2: 23, torch.float8_e4m3fn: 24, torch.uint16: 27, torch.uint32: 28, torch.uint64: 29,
}
TYPES = {code: dtype for dtype, code in CODES.items()}
SAMPLED = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
           torch.uint8, torch.bool, torch.complex64]
ODD = [torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2, torch.complex128]
SPECIAL = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.0, -3.0, 1e30, -1e30, 1e-30]
TOLERANCE = {torch.float32: (1e-4, 1e-5), torch.float64: (1e-6, 1e-7), torch.float16: (4e-3, 2e-3),
             torch.bfloat16: (2e-2, 1e-2), torch.complex64: (1e-4, 1e-5)}
CALLS_PER_KERNEL_AND_TYPES = 30


class Died(Exception):
    pass


class Failed(Exception):
    pass


class OptionalTensors(list):
    """A list to pass as Tensor?[]."""


def tensor_bytes(t):
    order = list(t.dim_order()) if t.dim() else []
    flat = t.detach().permute(order).contiguous().reshape(-1)
    data = torch.empty(flat.shape, dtype=flat.dtype).copy_(flat).view(torch.uint8).numpy().tobytes() if t.numel() else b""
    return struct.pack(f"<bB{t.dim()}q", CODES[t.dtype], t.dim(), *t.shape) + bytes(order) + struct.pack("<Q", len(data)) + data


def value_bytes(v):
    if v is None:
        return b"\0"
    if isinstance(v, torch.Tensor):
        return b"\1" + tensor_bytes(v)
    if isinstance(v, str):
        return b"\2" + struct.pack("<I", len(v)) + v.encode()
    if isinstance(v, bool):
        return b"\5" + bytes([v])
    if isinstance(v, float):
        return b"\3" + struct.pack("<d", v)
    if isinstance(v, int):
        return b"\4" + struct.pack("<q", v)
    if isinstance(v, torch.dtype):
        return b"\4" + struct.pack("<q", CODES[v])
    if isinstance(v, OptionalTensors):
        return b"\x0b" + struct.pack("<I", len(v)) + b"".join(b"\0" if t is None else b"\1" + tensor_bytes(t) for t in v)
    if v and isinstance(v[0], torch.Tensor):
        return b"\x09" + struct.pack("<I", len(v)) + b"".join(map(tensor_bytes, v))
    if v and isinstance(v[0], bool):
        return b"\x06" + struct.pack("<I", len(v)) + bytes(v)
    if v and isinstance(v[0], float):
        return b"\x07" + struct.pack(f"<I{len(v)}d", len(v), *v)
    return b"\x08" + struct.pack(f"<I{len(v)}q", len(v), *v)


class Reply:
    def __init__(self, b):
        self.b, self.i = b, 0

    def get(self, fmt):
        (v,) = struct.unpack_from("<" + fmt, self.b, self.i)
        self.i += struct.calcsize("<" + fmt)
        return v

    def raw(self, n):
        self.i += n
        return self.b[self.i - n : self.i]

    def text(self):
        return self.raw(self.get("I")).decode(errors="replace")

    def tensor(self):
        dtype, rank = TYPES[self.get("b")], self.get("B")
        shape = [self.get("q") for _ in range(rank)]
        order = list(self.raw(rank))
        data = self.raw(self.get("Q"))
        t = torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)
        return t.reshape([shape[d] for d in order]).permute([order.index(i) for i in range(rank)])

    def value(self):
        kind = self.get("B")
        if kind == 1:
            return self.tensor()
        if kind == 9:
            return [self.tensor() for _ in range(self.get("I"))]
        if kind == 11:
            return [self.tensor() if self.get("B") else None for _ in range(self.get("I"))]
        scalar = {3: "d", 4: "q", 5: "B"}
        if kind in scalar:
            return self.get(scalar[kind])
        if kind == 2:
            return self.text()
        return None if kind == 0 else [self.get({6: "B", 7: "d", 8: "q"}[kind]) for _ in range(self.get("I"))]


class Runner:
    """A runner process, started again after an abort. Its stderr goes to a file: a full pipe would stop it."""

    def __init__(self, path):
        self.path, self.process = path, None

    def frame(self):
        head = self.process.stdout.read(4)
        if len(head) == 4:
            return self.process.stdout.read(struct.unpack("<I", head)[0])
        code = self.process.wait()
        self.process = None
        self.errors.seek(max(0, self.errors.seek(0, 2) - 300))
        raise Died(f"{code}: {self.errors.read().decode(errors='replace').strip()}")

    def call(self, kernel, args):
        if self.process is None:
            self.errors = tempfile.TemporaryFile()
            self.process = subprocess.Popen([self.path, "--threads", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
            self.frame()
        body = b"K" + struct.pack("<I", len(kernel)) + kernel.encode() + struct.pack("<I", len(args)) + b"".join(map(value_bytes, args))
        self.process.stdin.write(struct.pack("<I", len(body)) + body)
        self.process.stdin.flush()
        r = Reply(self.frame())
        code, name, _, log = r.get("I"), r.text(), r.text(), r.text()
        if code:
            raise Failed(name.replace("Error::", ""), log.strip())
        return [r.value() for _ in range(r.get("I"))]


def overload(kernel):
    base, _, name = kernel[len("aten::") :].partition(".")
    return getattr(getattr(torch.ops.aten, base), name or "default")


FACTORY = {"dtype", "layout", "device", "pin_memory", "memory_format", "generator"}


def functional(kernels):
    """Maps functional and in-place overloads to (functional overload, kernel). A view is served by its copying twin."""
    served = {}
    for kernel in kernels:
        op = overload(kernel)
        if not any(a.is_out for a in op._schema.arguments):
            continue
        want = {a.name: str(a.type) for a in op._schema.arguments if not a.is_out}
        base = kernel[len("aten::") :].split(".")[0]
        for b in [base] + ([base[: -len("_copy")]] if base.endswith("_copy") else []):
            packet = getattr(torch.ops.aten, b, None)
            for f in [getattr(packet, o) for o in packet.overloads()] if packet else []:
                have = {a.name: str(a.type) for a in f._schema.arguments}
                if any(a.is_out for a in f._schema.arguments) or not have.keys() - want.keys() <= FACTORY:
                    continue
                if all(have.get(k) == t for k, t in want.items()):
                    served[f] = (f, kernel)
                    inplace = getattr(torch.ops.aten, b + "_", None)
                    if inplace and f._overloadname in inplace.overloads():
                        served[getattr(inplace, f._overloadname)] = (f, kernel)
    return served


def tensors(args):
    return [t for t in tree_flatten(list(args.values()))[0] if isinstance(t, torch.Tensor)]


def types(args):
    return tuple(str(t.dtype).removeprefix("torch.") for t in tensors(args))


class Record(TorchDispatchMode):
    def __init__(self, served, calls):
        super().__init__()
        self.served, self.calls = served, calls

    def __torch_dispatch__(self, func, _types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in self.served:
            f, kernel = self.served[func]
            full = {}
            for i, a in enumerate(f._schema.arguments):
                v = args[i] if i < len(args) else kwargs.get(a.name, a.default_value)
                if str(a.type) == "Tensor" and isinstance(v, (bool, int, float)):
                    v = torch.tensor(v)
                full[a.name] = v
            ts = tensors(full)
            if all(t.layout == torch.strided and type(t) is torch.Tensor for t in ts) and sum(t.numel() for t in ts) <= 20000:
                full = tree_map(lambda x: x.detach().clone(memory_format=torch.contiguous_format) if isinstance(x, torch.Tensor) else x, full)
                into = self.calls[kernel, types(full)]
                if len(into) < CALLS_PER_KERNEL_AND_TYPES:
                    into.append((f, full))
        return func(*args, **kwargs)


def collect(served):
    from torch.testing._internal.common_methods_invocations import op_db

    calls = collections.defaultdict(list)
    for op in op_db:
        for dtype in SAMPLED:
            if not op.supports_dtype(dtype, "cpu"):
                continue
            try:
                for s in itertools.islice(op.sample_inputs("cpu", dtype), 14):
                    with Record(served, calls):
                        op(s.input, *s.args, **s.kwargs)
            except Exception:  # a sample that PyTorch itself cannot make or run says nothing of a kernel
                continue
    return calls


def difference(got, want):
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)}, want {want.dtype}{list(want.shape)}"
    if want.dtype in TOLERANCE:
        rtol, atol = TOLERANCE[want.dtype]
        same = torch.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    else:
        same = got == want
    if want.numel() == 0 or bool(same.all()):
        return None
    i = int((~same).reshape(-1).nonzero()[0])
    return f"{int((~same).sum())} of {want.numel()} differ, at {i}: {got.reshape(-1)[i].item()}, want {want.reshape(-1)[i].item()}"


def argument(a, v):
    t = str(a.type)
    if t == "List[Optional[Tensor]]":
        return OptionalTensors(v)
    if t.startswith("List[int]") and isinstance(v, int):
        return [v]
    if "float" in t and isinstance(v, int) and not isinstance(v, bool):
        return float(v)
    if isinstance(v, torch.memory_format):
        return {torch.contiguous_format: 0, torch.preserve_format: 1, torch.channels_last: 2}[v]
    return v


def replay(runner, kernel, f, args, channels_last):
    """-> outcome, detail; None where PyTorch refuses too or the protocol has no such value."""
    op = overload(kernel)
    try:
        positional = [args[a.name] for a in f._schema.arguments if not a.kwarg_only]
        want = f(*positional, **{a.name: args[a.name] for a in f._schema.arguments if a.kwarg_only})
    except Exception:
        return None
    wants = list(want) if isinstance(want, (tuple, list)) else [want]

    def room(w):
        keep = channels_last and w.dim() == 4 and w.is_contiguous(memory_format=torch.channels_last)
        return torch.zeros_like(w if keep else w.contiguous())

    outs = [a for a in op._schema.arguments if a.is_out]
    listed = len(outs) == 1 and str(outs[0].type) == "List[Tensor]"
    given = [argument(a, args.get(a.name, a.default_value)) for a in op._schema.arguments if not a.is_out]
    try:
        got = runner.call(kernel, given + ([[room(w) for w in wants]] if listed else [room(w) for w in wants]))[len(given) :]
    except Failed as e:
        return e.args
    except Died as e:
        return "abort", str(e)
    except (TypeError, KeyError):
        return None
    if any(word in kernel for word in ("rand", "empty", "dropout")):
        return "ok", ""
    for g, w in zip(got[0] if listed else got, wants):
        if d := difference(g, w):
            return "wrong", d
    return "ok", ""


def short(v):
    if isinstance(v, torch.Tensor):
        return f"{str(v.dtype).removeprefix('torch.')}{list(v.shape)}" + (f"={v.reshape(-1).tolist()}" if v.numel() <= 4 else "")
    return "[" + ", ".join(map(short, v)) + "]" if isinstance(v, (list, tuple)) else str(v)


def each_tensor(args, change):
    """args with change(i, t) in place of the i-th tensor."""
    count = itertools.count()
    return tree_map(lambda x: change(next(count), x) if isinstance(x, torch.Tensor) else x, args)


def special(shift):
    def change(i, t):
        if not t.is_floating_point() or not t.numel():
            return t
        values = torch.tensor(SPECIAL).roll(shift * (i + 1)).repeat(-(-t.numel() // len(SPECIAL)))[: t.numel()]
        return values.reshape(t.shape).to(t.dtype)

    return change


def variations(operands, args):
    yield "plain", args
    if set(operands) <= {"float32", "int64", "bool"} and any(t.dim() == 4 for t in tensors(args)):
        yield "channels-last", each_tensor(args, lambda _, t: t.to(memory_format=torch.channels_last) if t.dim() == 4 else t)
    if operands[:1] == ("float32",):
        for which, dtype in itertools.product(range(len(operands) if len(operands) > 1 else 0), SAMPLED[1:6] + [torch.bool]):
            yield "mixed", each_tensor(args, lambda i, t: t.to(dtype) if i == which else t)
    if operands[:1] in (("float32",), ("float16",), ("bfloat16",)):
        for shift in (0, 5):
            yield "special", each_tensor(args, special(shift))
    if operands[:1] in (("int64",), ("float32",)):
        for dtype in ODD:
            yield "odd", each_tensor(args, lambda _, t: t.abs().to(dtype) if str(t.dtype).endswith(operands[0]) else t)


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    path = sys.argv[1]
    kernels = [line.split("\t")[0] for line in subprocess.check_output([path, "--kernels"], text=True).splitlines()]
    calls = collect(functional([k for k in kernels if k.startswith("aten::")]))
    runner = Runner(path)
    for (kernel, operands), samples in sorted(calls.items()):
        for f, args in samples:
            for name, varied in variations(operands, args):
                result = replay(runner, kernel, f, varied, name == "channels-last")
                if result is not None:
                    detail = result[1].replace("\n", " | ").replace("\t", " ")
                    shown = "; ".join(f"{k}={short(v)}" for k, v in varied.items())
                    print(kernel, ",".join(types(varied)), name, result[0], detail[:300], shown, sep="\t")


if __name__ == "__main__":
    main()
