//! An authority of one's own, and the certificates that it issues.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair,
    KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};

/// An authority that exists only in this process. Its keys are as good as any, and gone with it.
///
/// ```
/// use zk_testkit::tls::{Authority, Blemish};
///
/// let authority = Authority::new("test");
/// let server = authority.server(&["localhost", "127.0.0.1"]);
/// let expired = authority.blemished(&["localhost"], Blemish::Expired);
/// assert!(server.chain.contains("BEGIN CERTIFICATE"));
/// assert_ne!(server.chain, expired.chain);
/// ```
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its private key, both PEM.
#[derive(Clone)]
pub struct Issued {
    /// The certificate.
    pub chain: String,
    /// Its private key, in PKCS#8.
    pub key: String,
    serial: Vec<u8>,
}

/// What is wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blemish {
    /// It was valid once.
    Expired,
    /// It will be valid one day.
    NotYetValid,
    /// It is for a client.
    WrongPurpose,
}

impl Authority {
    /// A new authority of this name.
    ///
    /// # Panics
    /// The system has no random numbers.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut params = parameters(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    /// What those need who trust it, in PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a server of these names and addresses.
    #[must_use]
    pub fn server(&self, names: &[&str]) -> Issued {
        let mut params = parameters("server", names);
        // Members of an ensemble are clients of each other.
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params)
    }

    /// A certificate for a client, known to servers as `x509:CN=` and this name.
    #[must_use]
    pub fn client(&self, name: &str) -> Issued {
        let mut params = parameters(name, &[]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params)
    }

    /// A certificate for a server with something wrong.
    #[must_use]
    pub fn blemished(&self, names: &[&str], blemish: Blemish) -> Issued {
        let mut params = parameters("server", names);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        match blemish {
            Blemish::Expired => params.not_after = date_time_ymd(2001, 1, 1),
            Blemish::NotYetValid => params.not_before = date_time_ymd(2999, 1, 1),
            Blemish::WrongPurpose => {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            }
        }
        self.issue(params)
    }

    /// A certificate that is signed by itself only.
    ///
    /// # Panics
    /// The system has no random numbers.
    #[must_use]
    pub fn self_signed(names: &[&str]) -> Issued {
        let key = KeyPair::generate().expect("a key");
        let mut params = parameters("server", names);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.self_signed(&key).expect("a certificate");
        Issued { chain: certificate.pem(), key: key.serialize_pem(), serial: Vec::new() }
    }

    /// A list that says that these are not to be trusted any more, in PEM.
    ///
    /// # Panics
    /// The list cannot be signed.
    #[must_use]
    pub fn revoke(&self, certificates: &[&Issued]) -> String {
        let revoked = certificates.iter().map(|certificate| RevokedCertParams {
            serial_number: SerialNumber::from(certificate.serial.clone()),
            revocation_time: date_time_ymd(2001, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2001, 1, 1),
            next_update: date_time_ymd(3000, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.0).expect("a list").pem().expect("PEM")
    }

    fn issue(&self, mut params: CertificateParams) -> Issued {
        let key = KeyPair::generate().expect("a key");
        // Positive, and no two alike: of the key.
        let (_, random) = key.public_key_raw().split_at(key.public_key_raw().len() - 16);
        let serial = [&[1], random].concat();
        params.serial_number = Some(SerialNumber::from(serial.clone()));
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Issued { chain: certificate.pem(), key: key.serialize_pem(), serial }
    }
}

fn parameters(name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names that can be in a certificate");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(3000, 1, 1);
    params.use_authority_key_identifier_extension = true;
    params
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

/// Without the key.
impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued").field("chain", &self.chain).finish_non_exhaustive()
    }
}
