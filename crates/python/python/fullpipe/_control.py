"""Congestion controls in Python."""

from ._native import Ack, CongestionControl, CongestionEvent, Timeout

__all__ = ["Ack", "CongestionControl", "CongestionEvent", "Timeout"]
