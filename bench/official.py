"""The official Python pipeline on a saved program, for bench/: python official.py ARCHIVE BACKEND OUT.pte"""

import re
import sys
import zipfile

import torch
from executorch.exir import to_edge_transform_and_lower


def partitioners(backend):
    if backend == "xnnpack":
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

        return [XnnpackPartitioner()]
    if backend == "mlx":
        from executorch.backends.mlx.partitioner import MLXPartitioner

        return [MLXPartitioner()]
    return []


def register_types(archive):
    """The loader wants every type of the program's trees registered, and needs no more of it than a name."""
    known = torch.utils._pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE
    with zipfile.ZipFile(archive) as z:
        for entry in z.namelist():
            if "/models/" not in entry or not entry.endswith(".json"):
                continue
            for name in set(re.findall(r'\\"type\\": \\"([^"\\]+)\\"', z.read(entry).decode())):
                if name not in known and name != "builtins.tuple":
                    stub = type(name.replace(".", "_").replace(":", "_"), (list,), {})
                    torch.utils._pytree.register_pytree_node(
                        stub,
                        lambda x: (list(x), None),
                        lambda xs, _, stub=stub: stub(xs),
                        serialized_type_name=name,
                        flatten_with_keys_fn=lambda x: ([(torch.utils._pytree.SequenceKey(i), v) for i, v in enumerate(x)], None),
                    )


def main(archive, backend, out):
    register_types(archive)
    program = torch.export.load(archive)
    lowered = to_edge_transform_and_lower(program, partitioner=partitioners(backend)).to_executorch()
    with open(out, "wb") as f:
        lowered.write_to_file(f)


main(*sys.argv[1:])
