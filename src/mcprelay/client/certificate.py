"""What is wrong with a certificate that TLS does not accept, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple

_CLOCK = "see whether the clock of this machine is right; else the server needs another one"


class Fault(NamedTuple):
    """What is wrong with it, said of the certificate, and what to do."""

    what: str
    then: str


UNTRUSTED = Fault("is not trusted", "an authority of your own is named with ssl=, or SSL_CERT_FILE in the environment")
EARLY = Fault("is not valid yet", _CLOCK)
LATE = Fault("has expired", _CLOCK)
OTHER = Fault("is for another host", "use the address that it names, or give the server one for this address")
_FAULTS = {9: EARLY, 10: LATE, 62: OTHER, 64: OTHER}
"""By OpenSSL's codes (X509_V_ERR_*)."""


def fault_of(error: BaseException) -> Fault:
    """What is wrong with the certificate that an `ssl.SSLCertVerificationError` is of."""
    return _FAULTS.get(getattr(error, "verify_code", 0), UNTRUSTED)
