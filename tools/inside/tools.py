"""Tools of the host, as functions: called where no event loop runs they return a
result, and within one something to await. A call without a result raises ToolError."""

import caisson_tools as _caisson

ToolError = _caisson.ToolError
globals().update({kind.__name__: kind for kind in _caisson.KINDS.values()})
_functions = _caisson.functions()
globals().update(_functions)
__all__ = sorted(_functions)
