"""All files of a data set, from MLCommons' storage to a folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from harness.benchmarks.download.checked import FileState, State, check_files
from harness.benchmarks.download.listing import Index, ListedFile, file_url, list_path, parse_listing
from harness.benchmarks.download.transfer import Told, Transfer, folders_only, set_aside, wait
from harness.benchmarks.download.web import BrokeOff, Web
from harness.errors import DatasetError, MissingError
from harness.events import Note, Observer
from harness.rules import DatasetDownload

SPARE_BYTES = 64 << 20
"""Room that a download leaves on the disk."""
CONTACT_TRIES = 3
"""How often the storage is asked for a text or a size before it counts as out of reach."""
Pause = Callable[[float], None]
NOBODY = Told()
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Fetched:
    """How the files stand at the end, all of them right; which were fetched, and what was put aside as wrong."""

    states: tuple[FileState, ...]
    fetched: tuple[str, ...]
    aside: tuple[Path, ...] = ()


def local_states(folder: Path, download: DatasetDownload) -> list[FileState] | None:
    """How the files of the list in the folder stand, without a network; None where there is no list."""
    index = Index(download.index.value)
    path = list_path(folder, index)
    if not path.is_file():
        return None
    try:
        listing = parse_listing(path.read_text(encoding="utf-8", errors="replace"), path)
    except OSError as error:
        raise DatasetError(
            f"cannot be read: {error.strerror}", where=path, mend="mend the path or its rights"
        ) from None
    listing.agrees(download.required.value, download.md5.value, path)
    return check_files(folder, listing.files)


def fetch(
    folder: Path,
    download: DatasetDownload,
    *,
    web: Web,
    told: Told = NOBODY,
    pause: Pause = wait,
) -> Fetched:
    """Makes every file of the data set lie in ``folder`` with the md5 of the list, asking the network for what lacks.

    No network is asked where the folder has the list and all files are right. A file of another content is put aside
    under another name. Raises MissingError where the storage cannot be reached or the disk is too small (before
    anything is fetched), DatasetError where the storage's texts or files are not what they should be.
    """
    states = local_states(folder, download)
    if states is not None and all(state.state is State.RIGHT for state in states):
        return Fetched(tuple(states), ())
    source = _Source(Index(download.index.value), web, pause)
    base, text = source.texts()
    listing = parse_listing(text, source.index.list_url)
    listing.agrees(download.required.value, download.md5.value, source.index.list_url)
    lacking = [state for state in check_files(folder, listing.files) if state.state is not State.RIGHT]
    transfers = [source.transfer(folder, base, state.file) for state in lacking]
    _check_room(folder, transfers)
    _announce(transfers, base, folder, told.note)
    with folders_only(folder):
        folder.mkdir(parents=True, exist_ok=True)
    _write(list_path(folder, source.index), text)
    aside = [_moved_aside(folder, state) for state in lacking if state.md5 is not None]
    for transfer in transfers:
        transfer.run(web, told, pause)
    return Fetched(tuple(check_files(folder, listing.files)), tuple(t.file.path for t in transfers), tuple(aside))


@dataclass(frozen=True, slots=True)
class _Source:
    """The storage, asked again where an answer may come on another try."""

    index: Index
    web: Web
    pause: Pause

    def texts(self) -> tuple[str, str]:
        """The address below which the files lie, and the list of their md5."""
        base = self.index.base(self._patiently(self.web.text, self.index.url))
        return base, self._patiently(self.web.text, self.index.list_url)

    def transfer(self, folder: Path, base: str, file: ListedFile) -> Transfer:
        """One file, with its size."""
        url = file_url(base, file.path)
        return Transfer(file, url, folder, self._patiently(self.web.size, url))

    def _patiently(self, ask: Callable[[str], _T], url: str) -> _T:
        for tries in range(1, CONTACT_TRIES + 1):
            try:
                return ask(url)
            except BrokeOff as error:
                reason = str(error)
            if tries < CONTACT_TRIES:
                self.pause(float(tries))
        raise MissingError(f"the data set's storage does not answer: {reason}", where=url, mend=self.web.by_hand)


def _announce(transfers: Collection[Transfer], base: str, folder: Path, note: Observer) -> None:
    missing = sum(transfer.missing_bytes for transfer in transfers)
    note(Note(f"{len(transfers)} files, {megabytes(missing)} MB, from {base} to {folder}"))


def _moved_aside(folder: Path, state: FileState) -> Path:
    path = folder / state.file.path
    return set_aside(path, path, state.md5 or "")


def _check_room(folder: Path, transfers: Collection[Transfer]) -> None:
    place = next(path for path in (folder, *folder.parents) if path.exists())
    wanted = sum(transfer.missing_bytes for transfer in transfers)
    free = shutil.disk_usage(place).free
    if wanted and wanted + SPARE_BYTES > free:
        raise MissingError(
            f"the data set needs {megabytes(wanted)} MB more, and {megabytes(free)} MB are free",
            where=folder,
            expected=f"{megabytes(wanted + SPARE_BYTES)} MB",
            mend="free space, or name another place with --data_dir or HARNESS_DATA_DIR; nothing was fetched",
        )


def megabytes(size: int) -> str:
    """Bytes in millions, for people."""
    return f"{size / 1e6:,.1f}"


def _write(path: Path, text: str) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
