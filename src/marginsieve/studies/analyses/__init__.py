"""What a study looks at besides its methods, one module each; every module of this folder is loaded."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
