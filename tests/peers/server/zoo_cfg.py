"""What a zoo.cfg and the properties of a JVM say, in the words of `zk serve`."""

import dataclasses
import os
import pathlib
import re
import ssl


@dataclasses.dataclass
class Member:
    """A server as it is configured."""

    id: int
    settings: dict
    servers: dict
    properties: dict
    process: int

    @property
    def data(self):
        return pathlib.Path(self.settings["dataDir"])

    @property
    def expected(self):
        """Numbers of all servers that start together."""
        return sorted(map(int, self.servers)) or [self.id]

    @property
    def ensemble(self):
        """What the members of an ensemble, and no others, have in common."""
        if len(self.servers) > 1 or self.settings.get("standaloneEnabled") == "false":
            first = self.servers[min(self.servers, key=int)]
            return first.split(";")[0]
        return str(self.data)

    def mark(self, text):
        (self.data / "zk-serve").write_text(text)

    def has_mark(self, text):
        path = self.data / "zk-serve"
        return path.exists() and path.read_text() == text

    def ports(self):
        """Its client port, and that with TLS."""
        line = self.servers.get(str(self.id), "").split(";")
        in_line = [part.rsplit(":", 1)[-1] for part in line[1:]] + ["", ""]
        plain = self.settings.get("clientPort") or in_line[0]
        return int(plain or 0), int(self.settings.get("secureClientPort") or in_line[1] or 0)


def read(path, properties):
    """The member that a configuration describes."""
    settings, servers = {}, {}
    lines = pathlib.Path(path).read_text().splitlines()
    for name, value in (line.split("=", 1) for line in lines if "=" in line):
        name, value = name.strip(), value.strip()
        if name.startswith("server."):
            servers[name.removeprefix("server.")] = value
        else:
            settings[name] = value
    my_id = pathlib.Path(settings["dataDir"]) / "myid"
    number = int(my_id.read_text()) if my_id.exists() and servers else 1
    # Without `standaloneEnabled=false` a server whose list has nobody else is on its own.
    if len(servers) < 2 and settings.get("standaloneEnabled") != "false":
        servers = {}
    return Member(number, settings, servers, properties, os.getpid())


def arguments(members, scratch):
    """What to call `zk` with, for an ensemble of these members."""
    first = members[0]
    properties = {name.removeprefix("zookeeper."): it for name, it in first.properties.items()}
    ports = [member.ports() for member in members]
    args = ["serve", "--control", "--tick", first.settings.get("tickTime", "3000") + "ms"]
    for end in ("min", "max"):
        if millis := first.settings.get(f"{end}SessionTimeout"):
            args += [f"--{end}-session-timeout", millis + "ms"]
    args += ["--port", ",".join(str(port) for port, _ in ports)]
    if first.servers:
        for number in sorted(first.servers, key=int):
            args += ["--server", f"server.{number}={in_full(first, number, members)}"]
    if is_true(first.settings.get("reconfigEnabled")):
        args += ["--reconfig"]
    if is_true(properties.get("extendedTypesEnabled")):
        args += ["--ttl"]
    if millis := properties.get("znode.container.checkIntervalMs"):
        args += ["--container-check", millis + "ms"]
    if release := properties.get("release"):
        args += ["--release", release]
    if is_true(properties.get("readonlymode.enabled")):
        args += ["--read-only"]
    if digest := properties.get("DigestAuthenticationProvider.superDigest"):
        args += ["--super-digest", digest]
    if any("SASLAuthenticationProvider" in value for value in first.settings.values()):
        jaas = pathlib.Path(properties.get("java.security.auth.login.config", "/dev/null"))
        for user, password in re.findall(r'user_(\w+)="([^"]*)"', jaas.read_text()):
            args += ["--sasl-user", f"{user}:{password}"]
    if is_true(first.settings.get("sessionRequireClientSASLAuth")):
        args += ["--require-sasl"]
    if any(secure for _, secure in ports):
        args += ["--secure-port", ",".join(str(secure) for _, secure in ports)]
        args += tls(first.settings, scratch)
    return args


def in_full(member, number, members):
    """A server's line with its client port, which may stand elsewhere in its own configuration."""
    line = member.servers[number]
    owner = next((one for one in members if one.id == int(number)), None)
    if ";" in line or owner is None:
        return line
    return f"{line};{owner.ports()[0]}"


def is_true(text):
    return text == "true"


def tls(settings, scratch):
    """Certificates and keys as PEM."""
    keys, trusted = settings["ssl.keyStore.location"], settings.get("ssl.trustStore.location")
    if keys.endswith(".pem"):
        return ["--tls-cert", keys, "--tls-key", keys, "--tls-ca", trusted]
    # A Java keystore. The library that reads it is needed by whatever has made it.
    import jks

    chain, key, authorities = scratch / "chain.pem", scratch / "key.pem", scratch / "ca.pem"
    store = jks.KeyStore.load(keys, settings["ssl.keyStore.password"])
    [entry] = store.private_keys.values()
    pem = ssl.DER_cert_to_PEM_cert
    chain.write_text("".join(pem(certificate) for _, certificate in entry.cert_chain))
    key.write_text(pem(entry.pkey_pkcs8).replace("CERTIFICATE", "PRIVATE KEY"))
    store = jks.KeyStore.load(trusted, settings["ssl.trustStore.password"])
    authorities.write_text("".join(pem(entry.cert) for entry in store.certs.values()))
    return ["--tls-cert", chain, "--tls-key", key, "--tls-ca", authorities]
