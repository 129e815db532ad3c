"""The container of a model file: a zip archive, uncompressed, of one JSON text, plain arrays and a digest.

Nothing is unpacked that is larger than the file itself, no array is made before its size is known to be right, and a
file that was changed by accident does not have its digest.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError

TEXT = "model.json"
DIGEST = "sha256"
DTYPES = ("<f8", "<i8", "|u1", "|b1")
MOST_ARRAYS = 100_000


def pack(text: Any, arrays: list[Any]) -> bytes:
    """The bytes of an archive."""
    members = [(TEXT, json.dumps(text, allow_nan=False).encode("ascii"))]
    for k, array in enumerate(arrays):
        out = io.BytesIO()
        np.lib.format.write_array(out, plain(array), allow_pickle=False)
        members.append((f"{k}.npy", out.getvalue()))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, data in [*members, (DIGEST, _digest(members).encode("ascii"))]:
            archive.writestr(zipfile.ZipInfo(name), data)
    return content.getvalue()


def plain(array: Any) -> Any:
    """The array in one of the types that a file may hold."""
    array = np.asarray(array)
    kinds = {"f": "<f8", "i": "<i8", "u": "|u1" if array.dtype.itemsize == 1 else "<i8", "b": "|b1"}
    if array.dtype.kind not in kinds:
        raise TypeError(f"an array of {array.dtype}")
    return array.astype(kinds[array.dtype.kind], copy=False)


def unpack(path: Path) -> tuple[Any, list[Any]]:
    """The JSON text and the arrays of an archive; refuses anything else."""
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        names = [info.filename for info in infos]
        count = len(names) - 2
        if not 0 <= count <= MOST_ARRAYS or names != [TEXT, *(f"{k}.npy" for k in range(count)), DIGEST]:
            raise InputError("it does not hold what a model holds")
        if any(info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size for info in infos):
            raise InputError("it is compressed, which no model is")
        if sum(info.file_size for info in infos) > path.stat().st_size:
            raise InputError("it claims to hold more than it does")
        members = [(name, archive.read(name)) for name in names]
    *members, (_, digest) = members
    if digest != _digest(members).encode("ascii"):
        raise InputError("its digest is not that of its content: copy it again")
    text = json.loads(members[0][1].decode("ascii"), parse_constant=_no_constant)
    return text, [_array(data) for _, data in members[1:]]


def _digest(members: list[tuple[str, bytes]]) -> str:
    total = hashlib.sha256()
    for name, data in members:
        total.update(f"{name} {len(data)}\n".encode("ascii"))
        total.update(data)
    return total.hexdigest()


def _no_constant(word: str) -> Any:
    raise InputError(f"it holds the number {word}")


def _array(data: bytes) -> Any:
    """An array of a known type whose size is that of its bytes."""
    handle = io.BytesIO(data)
    if np.lib.format.read_magic(handle) != (1, 0):
        raise InputError("it holds an array of another version")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(handle)
    if dtype.str not in DTYPES or len(shape) > 2 or any(side < 0 for side in shape):
        raise InputError(f"it holds an array of {dtype.str!r} of shape {shape}")
    rest = memoryview(data)[handle.tell() :]
    if math.prod(shape) * dtype.itemsize != len(rest):
        raise InputError(f"it holds an array of {len(rest)} bytes that says it has the shape {shape}")
    flat = np.frombuffer(rest, dtype=dtype)
    if dtype.kind == "b" and (flat.view(np.uint8) > 1).any():
        raise InputError("it holds truth values that are neither 0 nor 1")
    array = flat.reshape(shape, order="F" if fortran else "C").copy(order="A")
    return array.astype(np.intp, copy=False) if dtype.kind == "i" else array
