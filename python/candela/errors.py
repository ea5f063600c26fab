"""What goes wrong, as exceptions: one class for each status code of the embedding API."""


class Error(Exception):
    """A failure of Candela. `status` is its code in candela.h; the text is the tool's."""

    status = 0


class InvalidArgumentError(Error, ValueError):
    """The call is wrong: fix it."""

    status = 1


class IncompatibleError(Error):
    """Versions do not fit."""

    status = 2


class UnsupportedError(Error, NotImplementedError):
    """Operators or features that are not there."""

    status = 3


class RefusedError(Error):
    """A backend refused, or `require_native` could not be held."""

    status = 4


class OutOfMemoryError(Error, MemoryError):
    """Of the host or of a device."""

    status = 5


class DeviceLostError(Error):
    """A device does not answer any more."""

    status = 6


class TimedOutError(Error, TimeoutError):
    """Something was not done in the time that it was given."""

    status = 7


class CancelledError(Error):
    """Somebody cancelled it, or what it needs was closed."""

    status = 8


class NotFoundError(Error, LookupError):
    """A file, backend or name does not exist."""

    status = 9


class FileError(Error, OSError):
    """Reading or writing failed."""

    status = 10


class InternalError(Error):
    """A defect in Candela or in a backend."""

    status = 11


class BadModelError(Error, ValueError):
    """The file is malformed."""

    status = 12


BY_STATUS = {error.status: error for error in Error.__subclasses__()}
