"""Open a collection or an experiment in the browser: ``bittern explore``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import echo

from bittern.cli.app import app
from bittern.cli.fit import Key
from bittern.errors import InputError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from bittern.web.source import CollectionSource

TOKEN = "BITTERN_TOKEN"
