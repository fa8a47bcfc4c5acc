use super::*;

fn url(text: &str) -> MysqlUrl {
    MysqlUrl::parse(text).unwrap()
}

/// Goal: every part of an address is read. Method: one with all of them, and short ones.
#[test]
fn an_address_is_read_in_parts() {
    let all =
        url("mysql://wo%40rker:p%2Fw@db.example:3307/shop?ssl-mode=REQUIRED&connect_timeout=3&application-name=x");
    assert_eq!((all.user(), all.password(), all.database()), ("wo@rker", Some("p/w"), Some("shop")));
    assert_eq!(all.host(), &Host::Tcp("db.example".into(), 3307));
    assert_eq!(all.tls().mode, TlsMode::Require);
    assert_eq!((all.connect_timeout(), all.application_name()), (Some(Duration::from_secs(3)), Some("x")));
    let short = url("mariadb://root@");
    assert_eq!((short.host(), short.database()), (&Host::Tcp("127.0.0.1".into(), 3306), None));
    assert_eq!(url("mysql://u@[::1]:1/d").target(), "mysql://u@[::1]:1/d");
    assert_eq!(url("mysql://u@h/d").with_database("e").target(), "mysql://u@h:3306/e");
}

/// Goal: a socket in the file system is taken in either form, and never asks for TLS. Method: both forms.
#[test]
fn a_unix_socket_is_read_in_both_forms() {
    for text in ["mysql://u@/d?socket=/run/my.sock&ssl-mode=required", "mysql://u@%2Frun%2Fmy.sock/d"] {
        let url = url(text);
        assert_eq!(url.host(), &Host::Unix("/run/my.sock".into()));
        assert_eq!((url.tls().mode, url.database()), (TlsMode::Disable, Some("d")));
        assert_eq!(MysqlUrl::parse(&url.target()).unwrap().host(), url.host());
    }
}

/// Goal: each ssl-mode, its spellings, and what is taken when it is not said. Method: a list.
#[test]
fn the_modes_of_tls_are_read() {
    for (text, mode) in [
        ("", TlsMode::Prefer),
        ("?sslmode=disabled", TlsMode::Disable),
        ("?ssl_mode=PREFERRED", TlsMode::Prefer),
        ("?ssl-mode=VERIFY_CA", TlsMode::VerifyAuthority),
        ("?ssl-mode=verify-identity", TlsMode::VerifyFull),
        ("?ssl-ca=/ca.pem", TlsMode::VerifyAuthority),
        ("?ssl-ca=system", TlsMode::VerifyFull),
        ("?ssl-ca=/ca.pem&ssl-mode=required", TlsMode::Require),
    ] {
        assert_eq!(url(&format!("mysql://u@h/d{text}")).tls().mode, mode, "{text}");
    }
    let client = url("mysql://u@h/d?ssl-cert=/c&ssl-key=/k").tls().client.clone().unwrap();
    assert_eq!((client.certificate, client.key), ("/c".into(), "/k".into()));
}

/// Goal: what cannot be read is refused with what to write. Method: one of each.
#[test]
fn what_is_no_address_is_refused() {
    for (text, error) in [
        ("postgres://u@h/d", UrlError::Scheme),
        ("mysql://h/d", UrlError::NoUser),
        ("mysql://:p@h/d", UrlError::NoUser),
        ("mysql://u%4@h", UrlError::Encoding { part: "user" }),
        ("mysql://u:a/b@h/d", UrlError::Unencoded),
        ("mysql://u:p@rt/b@h/d", UrlError::Unencoded),
        ("mysql://u:p@rt?b=1@h/d", UrlError::Unencoded),
        ("mysql://u@h/d@x", UrlError::Unencoded),
        ("mysql://u@h:99999/d", UrlError::Port),
        ("mysql://u@h:0/d", UrlError::Port),
        ("mysql://u@a,b/d", UrlError::Hosts),
        ("mysql://u@h/d?ssl-mod=x", UrlError::Unknown { name: "ssl-mod".into(), nearest: "ssl-mode" }),
        ("mysql://u@h/d?ssl-cert=/c", UrlError::HalfCertificate { given: "ssl-cert" }),
        ("mysql://u@h/d?ssl-key=/c", UrlError::HalfCertificate { given: "ssl-key" }),
        ("mysql://u:%00@h/d", UrlError::Nul { part: "password" }),
    ] {
        assert_eq!(MysqlUrl::parse(text), Err(error), "{text}");
    }
    for text in ["ssl-mode=always", "connect-timeout=soon", "socket=my.sock"] {
        let error = MysqlUrl::parse(&format!("mysql://u@h/d?{text}")).unwrap_err();
        assert!(matches!(error, UrlError::Value { .. }), "{text}: {error}");
        assert_eq!(error.code(), "HX4350");
    }
}

/// Goal: the password never prints. Method: Display, Debug and every error of an address that holds one.
#[test]
fn the_password_never_prints() {
    let url = url("mysql://u:secret@h/d");
    let shown = format!("{url} {url:?} {}", url.target());
    assert!(!shown.contains("secret"), "{shown}");
    for text in ["mysql://u:secret%4@h", "mysql://u:secret/x@h/d", "mysql://u:secret@h:x/d", "mysql://u:secret@h?a=b"] {
        let error = MysqlUrl::parse(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
}

/// Goal: what may be a part of a password is not shown as the name of a parameter. Method: passwords with a `?` or `&` that was not
/// percent-encoded; a parameter that is only misspelt is named.
#[test]
fn a_part_of_a_password_is_not_taken_for_a_parameter_and_shown() {
    for text in [
        "mysql://me:pw?s3cret",
        "mysql://me:pw?s3cret&x=1",
        "mysql://me@h/d?password=pw&s3cret",
        "mysql://me@h/d?password=pw&s3cret=1",
    ] {
        let error = MysqlUrl::parse(text).expect_err(text).to_string();
        assert!(!error.contains("s3cret"), "{text}: {error}");
    }
    let error = MysqlUrl::parse("mysql://me:pw@h/d?applicatio_name=x").expect_err("a slip").to_string();
    assert!(error.contains("applicatio_name"), "{error}");
}
