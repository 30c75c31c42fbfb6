"""The reference as an engine of the contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import thund_reference.pipeline
from thund_contract.engine import Capabilities, Durable, Life, World
from thund_contract.vocabulary import Config


class Reference:
    """Gives the reference's own world and life; they already speak the contract."""

    name = "reference"
    capabilities = Capabilities()

    def world(self, config: Config) -> World:
        """An empty disk and an empty sink."""
        return thund_reference.pipeline.World(config)

    def live(
        self, config: Config, world: World, *, now: Callable[[], int], durable: Durable
    ) -> Life:
        """A new process of the reference."""
        own = cast("thund_reference.pipeline.World", world)
        life = thund_reference.pipeline.Life(config, own, now=now, durable=durable)
        return cast("Life", life)  # its counter is read-only, which no caller minds
