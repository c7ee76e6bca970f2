"""Conversion of native tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

    from ._native import ArrowTable


def to_arrow(table: ArrowTable) -> pa.Table:
    """Returns a native table as a table of pyarrow, without a copy."""
    return pa.RecordBatchReader.from_stream(table).read_all()


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Returns a table as a DataFrame. Columns of numbers without a value have NaN."""
    frame: pd.DataFrame = table.to_pandas()
    return frame
