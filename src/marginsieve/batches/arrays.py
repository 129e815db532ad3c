"""Arrays of numpy, torch or cupy under one namespace, and the few things that the array API standard does not have.

torch, or cupy where torch is not installed, is loaded when a device is first asked for. What either raises means one
of two things: a device that is not there is refused input, whatever fails on one that is there the system's fault.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..errors import FaultKind, InputError, SystemFault, one_line

DeviceArray = Any  # an array of one of the libraries, on any device


@dataclass(frozen=True)
class Backend:
    """A library of arrays and a device of it."""

    xp: Any  # the namespace, as the array API standard has it
    library: str  # "numpy", "torch" or "cupy"
    device: Any = None

    def to_device(self, values: Any, dtype: Any = None) -> DeviceArray:
        """An array on the device, of doubles unless another type is given."""
        host = np.ascontiguousarray(values) if dtype is None else np.ascontiguousarray(values, dtype=dtype)
        if self.library == "torch":
            return self.xp.asarray(host, device=self.device)
        return self.xp.asarray(host)

    def to_host(self, values: DeviceArray) -> Any:
        """The same array in the memory of the host."""
        if self.library == "torch":
            return values.detach().cpu().numpy()
        return np.asarray(values) if self.library == "numpy" else values.get()

    def zeros(self, *shape: int) -> DeviceArray:
        """Doubles."""
        if self.library == "torch":
            return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)
        return self.xp.zeros(shape, dtype=self.xp.float64)

    def with_diagonal(self, M: DeviceArray, values: DeviceArray) -> DeviceArray:
        """Matrices (F, m, m) with values (F, m) added to their diagonals."""
        if self.library == "torch":
            out = M.clone()
            out.diagonal(dim1=1, dim2=2).add_(values)
            return out
        out = M.copy()
        every = self.xp.arange(M.shape[1])
        out[:, every, every] += values
        return out

    def factors(self, M: DeviceArray) -> Any:
        """Cholesky factors of positive definite matrices M (F, m, m), for `solve`."""
        if self.library == "torch":
            return self.xp.linalg.cholesky_ex(M)
        return M if self.library == "cupy" else [_factor(matrix) for matrix in M]

    def solve(self, factors: Any, right: DeviceArray) -> DeviceArray:
        """X with M X = right (F, m, k); nan where M is not positive definite."""
        if self.library == "torch":
            factor, failed = factors
            return self.xp.where((failed != 0)[:, None, None], self.xp.nan, self.xp.cholesky_solve(right, factor))
        if self.library == "cupy":
            return self.xp.linalg.solve(factors, right)
        solved = np.full_like(right, np.nan)
        for f, factor in enumerate(factors):
            if factor is not None:
                solved[f] = cho_solve(factor, right[f], check_finite=False)
        return solved

    def take_along(self, values: DeviceArray, index: DeviceArray) -> DeviceArray:
        """values[f, index[f, k]]: (F, n), (F, k) -> (F, k)."""
        return (
            self.xp.gather(values, 1, index) if self.library == "torch" else self.xp.take_along_axis(values, index, 1)
        )

    def indicator(self, places: DeviceArray, n: int) -> DeviceArray:
        """(F, n): 1 at some places (F, k), else 0."""
        return self.assign_at(self.zeros(places.shape[0], n), places, 1.0)

    def assign_at(self, out: DeviceArray, places: DeviceArray, values: DeviceArray | float) -> DeviceArray:
        """out (F, n) with values (F, k), or one number, at some places (F, k)."""
        if self.library == "torch":
            return out.scatter(1, places, values)
        out[self.xp.arange(out.shape[0])[:, None], places] = values
        return out

    def add_at(self, out: DeviceArray, places: DeviceArray, values: DeviceArray) -> DeviceArray:
        """out (F, n) with values (F, k) added at some places (F, k), which may occur more than once."""
        if self.library == "torch":
            return out.scatter_add(1, places, values)
        rows = self.xp.arange(out.shape[0])[:, None]
        self.xp.add.at(out, (rows, places), values)
        return out

    def without(self, values: DeviceArray, gone: DeviceArray) -> DeviceArray:
        """(F, n), places (F, k) -> (F, n - k): the values but for those at some places, in their order."""
        stay = self.assign_at(self.xp.isfinite(values), gone, False)
        return values[stay].reshape(values.shape[0], -1)

    def as_int32(self, values: DeviceArray) -> DeviceArray:
        """Whole numbers that take half the room."""
        return values.int() if self.library == "torch" else values.astype(np.int32)

    def places(self, chosen: DeviceArray) -> DeviceArray:
        """The places (k,) where a mask (n,) holds."""
        return self.xp.nonzero(chosen)[:, 0] if self.library == "torch" else self.xp.nonzero(chosen)[0]

    def order(self, values: DeviceArray) -> DeviceArray:
        """(F, n): the places of the values of each row, the lowest first; of equal ones the first."""
        if self.library == "torch":
            return self.xp.argsort(values, dim=1, stable=True)
        return self.xp.argsort(values, axis=1, kind="stable")

    def free_bytes(self) -> float:
        """Memory of the device that arrays may take."""
        if self.library == "torch" and str(self.device).startswith("cuda"):
            free, _ = self.xp.cuda.mem_get_info(self.device)
            return float(free)
        if self.library == "cupy":
            free, _ = self.xp.cuda.runtime.memGetInfo()
            return float(free + self.xp.get_default_memory_pool().free_bytes())
        return 2.0**30


NUMPY = Backend(np, "numpy")


PACKAGES = ("torch", "cupy", "cupy_backends")


def kind_of_device_error(error: BaseException) -> FaultKind | None:
    """What an exception means that came while arrays were on a device; None where it is none of these libraries'.

    torch raises RuntimeError itself for most of what a GPU answers, and both have subclasses of it and of MemoryError.
    """
    theirs = any(base.__module__.partition(".")[0] in PACKAGES for base in type(error).__mro__)
    return FaultKind.SYSTEM if theirs or type(error) is RuntimeError else None


@contextmanager
def explain_device_errors(arrays: Backend | None) -> Iterator[None]:
    """While arrays are on a device (None and numpy are not): what its library raises, as a sentence."""
    try:
        yield
    except Exception as error:
        if arrays is None or arrays.library == "numpy" or kind_of_device_error(error) is None:
            raise
        text = f"the device failed ({arrays.library}: {one_line(error)[:200]})"
        advice = "the CPU gives the same result (device='cpu', --device cpu)"
        raise SystemFault(f"{text}; nothing that was finished is lost, and {advice}") from error


def _factor(M: Any) -> Any:
    """A Cholesky factor of scipy's; None where M is not positive definite."""
    try:
        return cho_factor(M, lower=True, check_finite=False)
    except LinAlgError:
        return None


@lru_cache(maxsize=8)
def torch_on(device: str) -> Backend:
    """torch's arrays on a device."""
    import torch

    return Backend(torch, "torch", torch.device(device))


@lru_cache(maxsize=8)
def cupy_on(device: str) -> Backend:
    """cupy's arrays; "cuda:1" makes the second GPU the current one."""
    import cupy

    number = device.removeprefix("cuda").removeprefix(":")
    if number:
        cupy.cuda.Device(int(number)).use()
    return Backend(cupy, "cupy")


def has_cuda() -> bool:
    """Whether torch, or without it cupy, is installed, can be loaded and sees a GPU."""
    library = _gpu_library()
    try:
        if library == "torch":
            import torch

            return bool(torch.cuda.is_available())
        if library == "cupy":
            import cupy

            return bool(cupy.cuda.runtime.getDeviceCount() > 0)
    except (ImportError, OSError, RuntimeError):  # a driver that is missing, or too old
        pass
    return False


def _gpu_library() -> str | None:
    """The library of arrays on GPUs that is installed."""
    return next((name for name in ("torch", "cupy") if importlib.util.find_spec(name) is not None), None)


def on_host(values: Any) -> Any:
    """An array of another library than numpy, on any device, as numpy's; anything else as it is."""
    library = _library_of(values)
    if library == "torch":
        return values.detach().cpu().numpy()
    if library == "cupy":
        return values.get()
    foreign = hasattr(values, "__array_namespace__") and not isinstance(values, (np.ndarray, np.generic))
    return np.from_dlpack(values) if foreign else values


def to_library_of(values: Any, like: Any) -> Any:
    """Numbers of numpy as an array of the library and the device of another array; the same where that is numpy's."""
    if values.dtype.kind not in "biufc":
        return values
    library = _library_of(like)
    if library == "torch":
        import torch

        return torch.asarray(values, device=like.device)
    if library == "cupy":
        import cupy

        with like.device:
            return cupy.asarray(values)
    if on_host(like) is like:
        return values
    return like.__array_namespace__().asarray(values, device=like.device)


def _library_of(values: Any) -> str:
    """The package that the type of an object comes from."""
    return type(values).__module__.partition(".")[0]


def backend_for(device: str, gain: float) -> Backend | None:
    """The arrays for a job that a GPU does so many times as fast; None where it is for the CPU.

    Without a GPU "auto" is the CPU, and any other device is refused.
    """
    if device == "cpu" or (device == "auto" and not has_cuda()):
        return None
    if not has_cuda():
        library = _gpu_library()
        why = f"{library} sees no GPU" if library else "torch is not installed: pip install 'marginsieve[gpu]'"
        raise InputError(f"device is {device!r} and {why}")
    if gain <= 1.0:
        return None
    name = "cuda" if device == "auto" else device
    return torch_on(name) if _gpu_library() == "torch" else cupy_on(name)
