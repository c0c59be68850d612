"""Being asked to stop: by a cluster that takes a node back, or a user."""

from __future__ import annotations

import signal
from types import FrameType


class Stop:
    """Whether SIGTERM has asked this process to end."""

    requested = False

    @classmethod
    def on_sigterm(cls) -> Stop:
        """From now on SIGTERM does no more than note that it came."""
        stop = cls()
        signal.signal(signal.SIGTERM, stop._note)
        return stop

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
