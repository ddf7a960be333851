//! Who the command is, and whom it trusts.

use std::fs;
#[cfg(feature = "sasl-gssapi")]
use std::path::Path;

use zk_testkit::{
    real::{Release, Server},
    tls::{Authority, ClientAuth},
};

use crate::support::{Running, run, zk};

#[tokio::test]
async fn tls_trusts_ca_and_shows_a_certificate() {
    let authority = Authority::new("ours");
    let certificate = authority.server(&["localhost"]);
    let builder = Server::builder().release(Release::V3_9);
    let server = builder.secure(&certificate, ClientAuth::Need(&authority)).start().await.unwrap();
    let addr = format!("localhost:{}", server.secure_addr().unwrap().port());
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, contents: &str| {
        let path = folder.path().join(name);
        fs::write(&path, contents).unwrap();
        path
    };
    let me = authority.client("ann");
    let ca = file("ca.pem", &authority.pem());
    let mine = file("me.pem", &format!("{}{}", me.chain, me.key));
    let theirs = file("theirs.pem", &Authority::new("theirs").pem());

    let mut create = zk(&addr);
    create.args(["create", "/a", "x"]).arg("--tls-ca").arg(&ca).arg("--tls-cert").arg(&mine);
    assert_eq!(run(&mut create).await.ok(), "/a\n");
    let mut get = zk(&addr);
    get.args(["get", "/a"]).env("ZK_TLS_CA", &ca).env("ZK_TLS_CERT", &mine);
    assert_eq!(run(&mut get).await.ok(), "x");

    let mut distrusted = zk(&addr);
    distrusted.args(["get", "--connect-timeout", "10s", "/a"]).arg("--tls-ca").arg(&theirs);
    let ended = run(&mut distrusted).await;
    assert!(ended.code != Some(0) && ended.stderr.contains("unknown authority"), "{ended:?}");

    let mut missing = zk(&addr);
    let ended = run(missing.args(["get", "/a", "--tls-ca", "/nowhere/ca.pem"])).await;
    assert!(ended.stderr.contains("/nowhere/ca.pem cannot be read"), "{ended:?}");
}

#[tokio::test]
async fn passwords_come_from_files_or_environment() {
    let module = "org.apache.zookeeper.server.auth.DigestLoginModule required";
    let builder = Server::builder()
        .release(Release::V3_9)
        .file("jaas.conf", format!("Server {{\n{module}\nuser_ann=\"secret\";\n}};\n"))
        .property("java.security.auth.login.config", "{files}/jaas.conf")
        .config("sessionRequireClientSASLAuth=true")
        .config("authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider");
    let server = builder.start().await.unwrap();
    let addr = server.connect_string();
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    fs::write(&password, "secret\n").unwrap();
    let identity = folder.path().join("identity");
    fs::write(&identity, "digest:bob:secret\n").unwrap();

    let mut create = zk(&addr);
    create.args(["create", "/a", "x", "--sasl-user", "ann", "--sasl-password-file"]).arg(&password);
    create.arg("--auth-file").arg(&identity);
    assert_eq!(run(&mut create).await.ok(), "/a\n");
    let mut get = zk(&addr);
    get.args(["get", "/a"]).env("ZK_SASL_USER", "ann").env("ZK_SASL_PASSWORD", "secret");
    assert_eq!(run(&mut get).await.ok(), "x");
    let mut wrong = zk(&addr);
    wrong.args(["get", "/a"]).env("ZK_SASL_USER", "ann").env("ZK_SASL_PASSWORD", "wrong");
    let ended = run(&mut wrong).await;
    assert!(ended.stderr.contains("authentication failed"), "{ended:?}");
    let ended = run(zk(&addr).args(["get", "/a", "--sasl-user", "ann"])).await;
    assert!(ended.stderr.contains("ZK_SASL_PASSWORD"), "{ended:?}");
}

/// An option is heeded before the environment, and that before a profile, also where two of them name one thing.
#[tokio::test]
async fn identity_of_an_option_comes_first() {
    let serve = ["serve", "--port", "0", "--sasl-user", "ann:secret", "--sasl-user", "bob:other"];
    let mut serve = Running::start(zk("").args(serve));
    let addr = serve.line().await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let bob = file("bob", "digest:bob:x");
    let anns = file("anns", "secret");
    let text =
        format!("[profile.p.security]\nsasl_user = \"ann\"\nsasl_password_file = \"{anns}\"\n");
    let config = file("config.toml", &text);
    let whoami = |args: &[&str], environment: &[(&str, &str)]| {
        let mut command = zk(&addr);
        command.arg("whoami").args(args).env("ZK_CONFIG", &config);
        command.envs(environment.iter().copied());
        command
    };
    for (args, environment, who) in [
        (&["--auth-file", &*bob][..], &[("ZK_AUTH", "digest:ann:x")][..], "digest:bob"),
        (&["--profile", "p"], &[], "sasl:ann"),
        (&["--profile", "p", "--sasl-user", "bob"], &[("ZK_SASL_PASSWORD", "other")], "sasl:bob"),
        (
            &["--profile", "p"],
            &[("ZK_SASL_USER", "bob"), ("ZK_SASL_PASSWORD", "other")],
            "sasl:bob",
        ),
        (&["--profile", "p", "--sasl-password-file", &*anns], &[], "sasl:ann"),
    ] {
        let text = run(&mut whoami(args, environment)).await.ok();
        assert!(text.lines().any(|line| line == who), "{args:?} {environment:?}: {text}");
    }
    let wrong = [("ZK_SASL_PASSWORD", "wrong")];
    let refused = run(&mut whoami(&["--profile", "p"], &wrong)).await;
    assert!(refused.stderr.contains("authentication failed"), "{refused:?}");
    for args in [
        &["--auth", "digest:ann:x", "--auth-file", &*bob][..],
        &["--tls-cert", &*bob],
        &["--tls-key", &*bob],
        &["--sasl-password-file", &*anns],
        &["--kerberos", "--sasl-user", "ann"],
    ] {
        let refused = run(&mut whoami(args, &[])).await;
        assert_eq!(refused.code, Some(2), "{args:?}: {refused:?}");
    }
}

#[cfg(feature = "sasl-gssapi")]
#[tokio::test]
async fn kerberos_identifies_the_command() {
    use zk_testkit::real::Kdc;
    let kdc = Kdc::start().await.unwrap();
    let service = kdc.service("zookeeper/localhost").await.unwrap();
    let server = Server::builder().release(Release::V3_9).kerberos(&service).start().await.unwrap();
    let keytab = kdc.keytab(&["ann", "bob"]).await.unwrap();
    let by_name = format!("localhost:{}", server.addr().port());
    let command = |addr: &str, keytab: &Path, args: &[&str]| {
        let mut command = zk(addr);
        command.env("KRB5_CONFIG", kdc.config()).env("KRB5CCNAME", "MEMORY:own");
        command.env("KRB5_CLIENT_KTNAME", keytab).args(args);
        command
    };
    let who = run(&mut command(&by_name, &keytab, &["whoami", "--kerberos"])).await.ok();
    assert!(who.contains("sasl") && who.contains("ann@ZK.TEST"), "{who}");
    let args = ["whoami", "--kerberos-client", "bob", "--kerberos-server", "zookeeper/localhost"];
    let by_address = server.connect_string();
    let who = run(command(&by_address, &keytab, &args).env("ZK_KERBEROS", "true")).await.ok();
    assert!(who.contains("bob@ZK.TEST"), "{who}");

    let args = ["whoami", "--kerberos", "--connect-timeout", "10s"];
    let ended = run(&mut command(&by_name, Path::new("/nowhere/keytab"), &args)).await;
    assert!(ended.stderr.contains("no ticket"), "{ended:?}");
    let args = ["whoami", "--kerberos", "--sasl-user", "ann"];
    let ended = run(&mut command(&by_name, &keytab, &args)).await;
    assert!(ended.stderr.contains("cannot be used with"), "{ended:?}");
}

#[cfg(not(feature = "sasl-gssapi"))]
#[tokio::test]
async fn a_command_without_kerberos_says_so() {
    let ended = run(zk("127.0.0.1:1").args(["get", "/a", "--kerberos"])).await;
    assert!(ended.code == Some(2) && ended.stderr.contains("sasl-gssapi"), "{ended:?}");
}
