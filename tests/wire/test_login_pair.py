"""Both ends against each other: BackendLogin logs in where ServerAuthenticator guards."""

from __future__ import annotations

from itertools import product

import pytest

from proxy.wire import auth, server_auth
from proxy.wire.auth import CACHING_SHA2, NATIVE, Credential, RsaKey, make_nonce
from proxy.wire.constants import Capability
from proxy.wire.handshake import (
    Greeting,
    HandshakeResponse,
    SslRequest,
    build_greeting,
    parse_response,
)
from proxy.wire.login import BackendLogin, Done, Failed, LoginOptions, Send, StartTls, Tls
from proxy.wire.packets import err_packet, ok_packet
from proxy.wire.server_auth import Authority, Decoys, ServerAuthenticator

CAPABILITIES = (
    Capability.LONG_PASSWORD
    | Capability.PROTOCOL_41
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA
    | Capability.CONNECT_ATTRS
    | Capability.CONNECT_WITH_DB
)
PASSWORD = "sécret"
USERS = {
    "plain": Credential.parse(PASSWORD),
    "native": Credential.parse("*" + auth.native_stage2(PASSWORD.encode()).hex().upper()),
    "sha2": Credential.parse(auth.store_caching_sha2(PASSWORD.encode(), 1000)),
    "blank": Credential.parse(""),
}
RSA = RsaKey()


class Pair:
    """A client and a server joined by function calls; `tls`, and whether the transport is a Unix socket."""

    def __init__(self, authority: Authority, announced: str, *, tls: bool, unix: bool) -> None:
        self.authority = authority
        self.announced = announced
        self.tls = tls
        self.unix = unix

    def login(self, user: str, password: str) -> Done | Failed:
        nonce = make_nonce()
        offered = CAPABILITIES | Capability.SSL if self.tls else CAPABILITIES
        greeting = Greeting("9.7.0-shardgate", 7, nonce, offered, 45, 2, self.announced)
        guard = ServerAuthenticator(
            self.authority, nonce, secure=self.tls or self.unix, announced=self.announced
        )
        options = LoginOptions(user, password, tls=Tls.PREFERRED, secure=self.unix)
        client = BackendLogin(options)
        steps = client.receive(build_greeting(greeting), 0)
        while True:
            payload, seq = b"", 0
            for step in steps:
                if isinstance(step, Send):
                    payload, seq = step.payload, step.seq
                elif isinstance(step, StartTls):
                    assert isinstance(parse_response(payload), SslRequest)
                    (again,) = client.tls_started()
                    assert isinstance(again, Send)
                    payload, seq = again.payload, again.seq
                else:
                    return step
            if seq > (2 if self.tls else 1):
                answer = guard.receive(payload)
            else:
                response = parse_response(payload)
                assert isinstance(response, HandshakeResponse)
                answer = guard.start(response)
            steps = ()
            for reply in answer:
                seq += 1
                steps += client.receive(self.packet(reply), seq)

    @staticmethod
    def packet(step: server_auth.Step) -> bytes:
        if isinstance(step, server_auth.Send):
            return step.payload
        if isinstance(step, server_auth.Done):
            return ok_packet(0, 2)[4:]
        used = "YES" if step.password_used else "NO"
        return err_packet(0, 1045, "28000", f"using password: {used}")[4:]


CASES = list(product(USERS, [CACHING_SHA2, NATIVE], [False, True], [False, True]))


@pytest.mark.parametrize(("user", "announced", "tls", "unix"), CASES)
def test_every_form_plugin_and_transport(user: str, announced: str, tls: bool, unix: bool) -> None:
    pair = Pair(Authority(USERS.get, RSA, Decoys(USERS.values())), announced, tls=tls, unix=unix)
    right = "" if user == "blank" else PASSWORD
    for _ in range(2):  # the second time from the cache
        done = pair.login(user, right)
        assert isinstance(done, Done), done
        if user == "sha2":
            assert done.plugin == CACHING_SHA2
        elif user == "native" and not (tls or unix):
            assert done.plugin == NATIVE
        else:
            assert done.plugin == announced
        assert pair.login(user, "wrong") == Failed(1045, "28000", "using password: YES")
        if user != "blank":
            assert pair.login(user, "") == Failed(1045, "28000", "using password: NO")
    assert pair.login("nobody", PASSWORD) == Failed(1045, "28000", "using password: YES")
    assert pair.login("nobody", "") == Failed(1045, "28000", "using password: NO")
