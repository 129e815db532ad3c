"""How loops are compiled: one signature each, cached on disk, without the GIL, never with threads of their own.

numba is loaded when the first loop runs, not when the package is imported.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])


class _Loop:
    """A function that is compiled when it is first called, with the loops that it calls."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.machine_code: Any = None

    def compile(self) -> Any:
        """numba's function; it takes this one's place in the module, and so do those that it calls."""
        if self.machine_code is None:
            import numba

            # numba resolves names when it compiles: the loops that this one calls must be compiled functions by then.
            known = self.function.__globals__
            for name in self.function.__code__.co_names:
                if isinstance(known.get(name), _Loop):
                    known[name] = known[name].compile()
            self.machine_code = numba.njit(cache=True, nogil=True)(self.function)
            if known.get(self.function.__name__) is self:
                known[self.function.__name__] = self.machine_code
        return self.machine_code

    def __call__(self, *arguments: Any) -> Any:
        return self.compile()(*arguments)


def jit(function: F) -> F:
    """Compile `function` on its first call (float64, C-contiguous arrays)."""
    return cast(F, _Loop(function))
