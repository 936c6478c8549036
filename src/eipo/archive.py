"""Read an exported agent, a file that a stranger may have made. Nothing in it is run, and nothing is believed."""

from __future__ import annotations

import hashlib
import json
import stat
import zipfile
import zlib
from pathlib import Path
from typing import Any

from .agent import DESCRIPTION, WEIGHTS, TrainedAgent, build
from .checkpoint import UNREADABLE, first_line, refuse_newer
from .errors import EipoError

FORMAT = 1
RUN, CARD, MANIFEST = "run.json", "README.md", "manifest.json"
MEMBERS = (WEIGHTS, DESCRIPTION, RUN, CARD, MANIFEST)
TEXT = 4 * 2**20  # bytes that a member other than the weights may have
BROKEN = (*UNREADABLE, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, NotImplementedError)


def read_archive(path: Path) -> tuple[TrainedAgent, dict[str, Any]]:
    """The agent, and what the file says of its run. EipoError where anything is not as `export` writes it."""
    try:
        parts = _members(path)
        manifest = json.loads(parts[MANIFEST])
        refuse_newer(path, manifest["format"], FORMAT)
        if manifest["files"].keys() != set(MEMBERS) - {MANIFEST}:
            raise EipoError(f"{path}: its manifest lists other files than there are")
        for name, about in manifest["files"].items():
            if hashlib.sha256(parts[name]).hexdigest() != about["sha256"]:
                raise EipoError(f"{path}: {name} is damaged: its checksum is another")
        run = json.loads(parts[RUN])
        refuse_newer(path, run["format"], FORMAT)
        if not (isinstance(run["config"], dict) and isinstance(run["iteration"], int)):
            raise EipoError(f"{path}: {RUN} does not hold a run")
        if not isinstance(run["alpha"], float | int | None):
            raise EipoError(f"{path}: alpha is no number")
        return build(json.loads(parts[DESCRIPTION]), parts[WEIGHTS], str(path)), run
    except BROKEN as e:
        raise EipoError(f"{path} is no agent that eipo has exported: {first_line(e)}") from e


def _members(path: Path) -> dict[str, bytes]:
    """The bytes of each member, all of which have been looked at before any is read."""
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        for info in infos:
            _refuse(path, info, size)
        names = [info.filename for info in infos]
        if missing := [name for name in MEMBERS if name not in names]:
            raise EipoError(f"{path}: {missing[0]} is missing")
        if len(names) != len(MEMBERS):
            raise EipoError(f"{path} has a member twice")
        return {name: archive.read(name) for name in MEMBERS}


def _refuse(path: Path, info: zipfile.ZipInfo, size: int) -> None:
    name = info.filename
    shown = ascii(name)[:80]
    if ".." in name or name.startswith(("/", "\\")) or ":" in name:
        raise EipoError(f"{path}: its member {shown} points outside")
    if stat.S_ISLNK(info.external_attr >> 16):
        raise EipoError(f"{path}: its member {shown} is a link")
    if name not in MEMBERS:
        raise EipoError(f"{path}: {shown} does not belong into it")
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
        raise EipoError(f"{path}: {shown} is compressed or encrypted, which export never does")
    if info.file_size != info.compress_size or info.file_size > size:
        raise EipoError(f"{path}: {shown} says that it has {info.file_size} bytes, the file has {size}")
    if name != WEIGHTS and info.file_size > TEXT:
        raise EipoError(f"{path}: {shown} has {info.file_size} bytes, which is too much")
