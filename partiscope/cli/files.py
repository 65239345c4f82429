"""Files that commands are given."""

from pathlib import Path

from partiscope.cli.exits import CommandError, Exit


def text_of(path: Path) -> str:
    """Text of a file, without the byte order mark that some editors write.

    Raises:
        CommandError: status 2; it cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}", Exit.WRONG_USE) from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not UTF-8: save it as UTF-8", Exit.WRONG_USE) from error
