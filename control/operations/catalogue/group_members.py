"""Groups with members commit for themselves: their offsets are left alone."""

from control.kafka.admin import KafkaAdmin
from control.model.units import counted
from control.operations.errors import GroupActiveError, InvalidInputError


async def require_no_members(admin: KafkaAdmin, group: str, *, must_exist: bool = False) -> None:
    """Refuse a group whose consumers run; one that does not exist has none.

    :raises GroupActiveError: it has members.
    :raises InvalidInputError: it does not exist though it ``must_exist``.
    """
    if group not in {each.group_id for each in await admin.groups.list_groups()}:
        if must_exist:
            words = f"there is no group {group}; `partiscope groups` lists them"
            raise InvalidInputError({"group": words})
        return
    described = await admin.groups.describe_group(group)
    if described.members:
        raise GroupActiveError(group, counted(len(described.members), "member"))
