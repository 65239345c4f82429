"""A local file system whose calls fail as the system lets them fail: EIO, EMFILE, ENOSPC …

    system = FaultyFiles()
    files.system = system.as_pyarrow()
    system.fail("open", errno.EMFILE, name="history/", times=1)

Everything that is not told to fail is done on the disk.
"""

import io
import os
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import fs


@dataclass(slots=True, kw_only=True)
class Fault:
    """Calls of one kind on paths with this in them fail with this error number."""

    call: str
    code: int
    name: str
    times: int
    met: int = 0


class _Source(io.RawIOBase):
    """An open file whose reads may fail."""

    def __init__(self, system: "FaultyFiles", path: str) -> None:
        self._system, self._path = system, path
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by `close`)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        self._system.maybe_fail("read", self._path)
        return self._file.read(size)

    def close(self) -> None:
        self._file.close()
        super().close()


class FaultyFiles(fs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """The local file system, with faults."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._local = fs.LocalFileSystem()

    def as_pyarrow(self) -> Any:
        return fs.PyFileSystem(self)

    def fail(self, call: str, code: int, *, name: str = "", times: int = 1 << 30) -> Fault:
        """Let ``open``, ``read``, ``write``, ``delete``, ``move`` or ``list`` fail."""
        fault = Fault(call=call, code=code, name=name, times=times)
        self.faults.append(fault)
        return fault

    def mend(self) -> None:
        self.faults.clear()

    def maybe_fail(self, call: str, path: str) -> None:
        for fault in self.faults:
            if fault.call == call and fault.name in path and fault.met < fault.times:
                fault.met += 1
                raise OSError(fault.code, os.strerror(fault.code), path)

    def get_type_name(self) -> str:
        return "faulty"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        return self._local.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        self.maybe_fail("list", selector.base_dir)
        return self._local.get_file_info(selector)

    def create_dir(self, path: str, recursive: bool) -> None:
        self._local.create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        self._local.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        self._local.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        raise OSError("not in a test")

    def delete_file(self, path: str) -> None:
        self.maybe_fail("delete", path)
        self._local.delete_file(path)

    def move(self, src: str, dest: str) -> None:
        self.maybe_fail("move", src)
        self._local.move(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        self._local.copy_file(src, dest)

    def open_input_stream(self, path: str) -> Any:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        self.maybe_fail("open", path)
        return pa.PythonFile(_Source(self, path), mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        self.maybe_fail("write", path)
        return self._local.open_output_stream(path)

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        return self._local.open_append_stream(path)
