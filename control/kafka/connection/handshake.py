"""Why a connection did not come about, in an operator's words.

What trying again cannot mend (a wrong password, an untrusted certificate) is raised at once; what
may pass (a closed connection) gets a next step that fits the settings.
"""

import errno
import os
import re
import ssl
from typing import Final

from aiokafka.conn import gssapi
from aiokafka.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import LoginError, TlsError

_LOGIN: Final = (AuthenticationFailedError, SaslAuthenticationFailed)
_MECHANISM: Final = (UnsupportedSaslMechanismError, IllegalSaslStateError)
TICKET_ERRORS: Final[tuple[type[Exception], ...]] = (
    () if gssapi is None else (gssapi.exceptions.GSSError,)
)
"""What comes of a login by Kerberos, for which a package of its own is needed."""
_ERRNO: Final = re.compile(r"\[Errno (-?\d+)\] ")


def maybe_raise_for_good(
    error: Exception, address: tuple[str, int], settings: KafkaSettings
) -> None:
    """Raise when the reason will still be there the next time.

    :raises LoginError: wrong user, password, token; no ticket; a mechanism that the listener
        lacks.
    :raises TlsError: a certificate that is not trusted, or for another name.
    """
    where = f"{address[0]}:{address[1]}"
    causes = _chain(error)
    if isinstance(error, _LOGIN):
        user = _who(settings)
        raise LoginError(
            f"{where} does not accept {user}",
            reason=f"{settings.sasl_mechanism}: {error}",
            next_step="check user name and password (or token), and that the user exists there",
        ) from error
    if isinstance(error, TICKET_ERRORS):
        raise LoginError(
            f"there is no Kerberos ticket for {settings.sasl_kerberos_service_name} at {where}",
            reason=" ".join(str(error).split()),
            next_step="get one with `kinit`, or name a keytab with KRB5_CLIENT_KTNAME; check "
            "KRB5_CONFIG, sasl_kerberos_service_name and sasl_kerberos_domain_name",
        ) from error
    if isinstance(error, _MECHANISM):
        raise LoginError(
            f"{where} does not take {settings.sasl_mechanism}",
            reason=str(error),
            next_step="set sasl_mechanism to one that the listener enables, or security_protocol "
            "to what the listener speaks",
        ) from error
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise TlsError(
                f"the certificate of {where} is not trusted",
                reason=cause.verify_message or str(cause),
                next_step="set ssl_cafile to the CA that signed it, and use the host name that "
                "the certificate names",
            ) from error


def reason_of(error: BaseException | None) -> str:
    """Why no connection came about, without numbers of the system's errors."""
    if is_refused(error):
        return "nothing listens there"
    if codes := sorted(_codes(error)):
        return ", ".join(map(os.strerror, codes))
    return _ERRNO.sub("", str(error)) or type(error).__name__


def is_refused(error: BaseException | None) -> bool:
    """Whether no program listens at any of the addresses that were tried."""
    return _codes(error) == {errno.ECONNREFUSED}


def next_step_after(
    error: BaseException | None, settings: KafkaSettings, *, is_any_broker: bool = False
) -> str:
    """Suggests what to try after connections that failed in this way. ``is_any_broker``: each
    broker that is known was tried."""
    usual = "check that the brokers run and the address is right: `partiscope doctor`"
    if is_refused(error) and is_any_broker:
        return f"{usual}; `partiscope up` starts the bundled brokers"
    if error is None or is_refused(error):
        return usual
    protocol = settings.security_protocol
    if "SSL" in protocol:
        return (
            f"{usual}; {protocol} needs a TLS listener, which may also ask for a client "
            "certificate (ssl_certfile, ssl_keyfile)"
        )
    if "closed" in str(error) or isinstance(error, TimeoutError | ConnectionResetError):
        wanted = "TLS" if protocol.startswith("SASL") else "TLS or SASL"
        return f"{usual}; a listener with {wanted} closes such connections: set security_protocol"
    return usual


def _codes(error: BaseException | None) -> set[int]:
    """The system's numbers of an error; a name with several addresses may have several."""
    return {int(code) for code in _ERRNO.findall(str(error)) if int(code) > 0}


def _who(settings: KafkaSettings) -> str:
    if settings.sasl_mechanism == "OAUTHBEARER":
        return "the token"
    return "the ticket" if settings.sasl_username is None else f"user {settings.sasl_username}"


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
