"""`node.metadata`: the latest committed image of this node, and who wants to hear of changes."""

from collections.abc import Callable
from dataclasses import replace

from broker.background import attempt
from broker.metadata.delta import ReplayedBatch
from broker.metadata.image import ImageDelta, MetadataImage

MetadataCallback = Callable[[MetadataImage, MetadataImage, ImageDelta], None]


class MetadataService:
    """Holds the image; only the replay of committed batches and leader changes replace it.

    Lives in the event loop, not thread-safe. Callbacks get (old, new, changed) synchronously,
    in the order of subscription, after the image was replaced; an error of one is logged. A
    change of the active controller alone is published too (`changed.controller_changed`).
    """

    def __init__(self, *, node_id: int, cluster_id: str) -> None:
        self._node_id = node_id
        self._image = MetadataImage(cluster_id=cluster_id)
        self._callbacks: list[MetadataCallback] = []

    @property
    def image(self) -> MetadataImage:
        """The latest committed and replayed image."""
        return self._image

    @property
    def controller_id(self) -> int | None:
        """The active controller as far as this node knows."""
        return self._image.controller_id

    @property
    def broker_epoch(self) -> int:
        """This node's broker epoch; -1 until its registration is replayed."""
        broker = self._image.brokers.get(self._node_id)
        return -1 if broker is None else broker.epoch

    def subscribe(self, callback: MetadataCallback) -> None:
        """Call back after every replayed batch that changed something."""
        self._callbacks.append(callback)

    def publish(self, replayed: ReplayedBatch) -> None:
        """Replace the image by the one after a committed batch; called by the quorum's shell."""
        self._replace(replayed.image, replayed.changed)

    def restore(self, image: MetadataImage) -> None:
        """Begin with a snapshot's image; before anybody subscribes."""
        assert not self._callbacks
        self._image = image

    def set_controller(self, controller_id: int | None) -> None:
        """Note the active controller; called by the quorum's shell."""
        if controller_id != self._image.controller_id:
            image = replace(self._image, controller_id=controller_id)
            self._replace(image, ImageDelta(controller_changed=True))

    def _replace(self, image: MetadataImage, changed: ImageDelta) -> None:
        old, self._image = self._image, image
        if changed.is_empty:
            return
        for callback in self._callbacks:
            attempt("followers of the metadata", callback, old, image, changed)
