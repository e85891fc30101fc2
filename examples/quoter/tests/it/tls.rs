//! The tutorial's page on TLS: its commands make the certificates, and the programs use them.

use crate::support::{Folder, Server, client, has, run_block};

const PAGE: &str = include_str!("../../../../docs/src/tutorial-tls.md");

#[test]
fn calls_are_encrypted_and_both_sides_prove_their_identity() {
    if !has("openssl", "openssl") {
        return;
    }
    let folder = Folder::make("tls");
    run_block(PAGE, "openssl", folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let identity = |name: &str| {
        let (certificate, key) = (file(&format!("{name}.pem")), file(&format!("{name}.key")));
        [
            "-ORBSSLCertificate",
            &certificate,
            "-ORBSSLPrivateKey",
            &key,
        ]
        .map(str::to_owned)
    };
    let authority = ["-ORBSSLCertificateAuthority".to_owned(), file("ca.pem")];
    let mutual = ["-ORBSSLVerify", "mutual"].map(str::to_owned);
    let endpoint = ["-ORBListenEndpoints", "ssliop://127.0.0.1:0"].map(str::to_owned);

    let server = Server::start(&[&endpoint[..], &identity("server"), &authority, &mutual].concat());
    let reference = [server.reference.clone(), "ACME".to_owned()];
    let known = client(&[&reference[..], &authority, &identity("client")].concat());
    assert!(known.status.success(), "{known:?}");

    let unknown = client(&[&reference[..], &authority].concat());
    assert!(
        !unknown.status.success(),
        "without a certificate: {unknown:?}"
    );
}
