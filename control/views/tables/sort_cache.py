"""Orders of one snapshot's tables: who pages, jumps or refreshes does not filter and sort again."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final

from control.views.tables.query import Order

ORDERS_MAX: Final = 16
"""Of 133,000 rows each takes one megabyte."""


class Orders:
    """The last ones asked for. Safe between threads; two that ask at once may both find it."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, Order] = OrderedDict()
        self._lock = Lock()

    def of(self, key: Hashable, find: Callable[[], Order]) -> Order:
        """The order under this key; ``find`` finds it where it is not known."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        order = find()
        with self._lock:
            self._known[key] = order
            while len(self._known) > ORDERS_MAX:
                self._known.popitem(last=False)
        return order
