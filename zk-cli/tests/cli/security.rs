//! Who the command is, and whom it trusts.

use std::fs;
#[cfg(feature = "sasl-gssapi")]
use std::path::Path;

use zk_testkit::{
    real::{Release, Server},
    tls::{Authority, ClientAuth},
};

use crate::support::{run, zk};

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
    distrusted.args(["get", "--connect-timeout", "2s", "/a"]).arg("--tls-ca").arg(&theirs);
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

    let args = ["whoami", "--kerberos", "--connect-timeout", "2s"];
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
