"""What a wrong call of this package raises: an error that names the line of the caller, and the argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def explain(error: Exception, *, is_passing: bool = False) -> None:
    """Raise a clearer error in place of one that a call of this package has caused, if there is one.

    With `is_passing`, the error has not left the package yet.
    """
    if isinstance(error, OSError):  # it says what is wrong, and is no mistake of the code
        return
    from .on_demand.mistakes import in_argument, in_own_call

    mistake = in_own_call(error) if is_passing else in_argument(error)
    if mistake is not None:
        raise mistake from error


def explains(function: F) -> F:
    """Let a function that is called with what it does not take name the caller, and the argument.

    It is for functions that look into their arguments, and are not called for each message.
    """

    @wraps(cast("Any", function))
    def _explained(*args: Any, **named: Any) -> Any:
        try:
            return cast("Any", function)(*args, **named)
        except Exception as error:
            explain(error, is_passing=True)
            raise

    return cast("F", _explained)
