use super::*;
use crate::tls::ClientFiles;

fn url(text: &str) -> PostgresUrl {
    PostgresUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn tcp(name: &str) -> Host {
    Host::Tcp(name.to_owned())
}

/// Goal: the usual forms come out as the parts that were meant. Method: a list of addresses and their targets.
#[test]
fn the_usual_addresses_are_read() {
    for (text, target) in [
        ("postgres://u:p@h:1234/d", "postgres://u@h:1234/d"),
        ("postgresql://u@h/d", "postgres://u@h:5432/d"),
        ("postgres://h", "postgres://h:5432/"),
        ("postgres://u@h", "postgres://u@h:5432/u"),
        ("postgres://u@[::1]:7/d", "postgres://u@[::1]:7/d"),
        ("postgres://u@a:1,b,c:3/d", "postgres://u@a:1,b:5432,c:3/d"),
        ("postgres://u@/d?host=/run/pg&port=7", "postgres://u@/run/pg:7/d"),
        ("postgres://u@%2Frun%2Fpg:7/d", "postgres://u@/run/pg:7/d"),
        ("postgres:///d?user=u&host=a,b&port=1,2", "postgres://u@a:1,b:2/d"),
        ("postgres://u%40x:p@h/a%20b", "postgres://u@x@h:5432/a b"),
        ("postgres://u@h/d?dbname=e", "postgres://u@h:5432/e"),
    ] {
        assert_eq!(url(text).target(), target, "{text}");
    }
    for late in ["u:a/b@h/d", "u:p@rt/b@h/d", "u:p@rt?b=1@h/d", "u@h/d@x", "u:p@h/d?application_name=a@b"] {
        assert_eq!(PostgresUrl::parse(&format!("postgres://{late}")).unwrap_err(), UrlError::Unencoded, "{late}");
    }
    assert_eq!(url("postgres:///d?user=u@x&host=h").user(), Some("u@x"), "no login stands before it");
    assert!(matches!(url("postgres:///d").hosts(), [(Host::Unix(_), 5432)]));
    assert_eq!(url("postgres://a,b:7/d").hosts(), [(tcp("a"), 5432), (tcp("b"), 7)]);
    assert_eq!(url("postgres://u@h/d").with_database("e").database(), Some("e"));
}

/// Goal: parameters arrive in the driver's settings. Method: what the driver then says of itself.
#[test]
fn parameters_reach_the_driver() {
    let config = url("postgres://u:p%40%3A@h/d?options=-c%20geqo%3Doff&target_session_attrs=primary").driver_config();
    assert_eq!(config.get_password(), Some(b"p@:".as_slice()));
    assert_eq!(config.get_options(), Some("-c geqo=off"));
    assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    assert_eq!(config.get_ssl_mode(), DriverMode::Prefer);
    let several = url("postgres://a,b/d?sslmode=verify-full").driver_config();
    assert_eq!(several.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    assert_eq!(several.get_ssl_mode(), DriverMode::Require);
    assert_eq!(url("postgres://a/d").driver_config().get_target_session_attrs(), TargetSessionAttrs::Any);
    assert_eq!(url("postgres://a/d?connect_timeout=3").connect_timeout(), Some(Duration::from_secs(3)));
    assert_eq!(url("postgres://a/d?connect_timeout=0").connect_timeout(), None);
    assert_eq!(url("postgres://a/d?application_name=x").application_name(), Some("x"));
}

/// Goal: the TLS part is as libpq has it. Method: each mode, each kind of roots, and a socket.
#[test]
fn the_tls_part_is_read() {
    for (text, mode) in [
        ("", TlsMode::Prefer),
        ("sslmode=disable", TlsMode::Disable),
        ("sslmode=allow", TlsMode::Prefer),
        ("sslmode=prefer", TlsMode::Prefer),
        ("sslmode=require", TlsMode::Require),
        ("ssl=true", TlsMode::Require),
        ("sslmode=verify-ca", TlsMode::VerifyAuthority),
        ("sslmode=verify-full", TlsMode::VerifyFull),
        ("sslrootcert=system", TlsMode::VerifyFull),
        ("sslmode=require&host=/run/pg", TlsMode::Disable),
    ] {
        assert_eq!(url(&format!("postgres://h/d?{text}")).tls().mode, mode, "{text}");
    }
    let tls = url("postgres://h/d?sslrootcert=/a&sslcert=/b&sslkey=/c").tls().clone();
    assert_eq!(tls.roots, TlsRoots::File("/a".into()));
    assert_eq!(tls.client, Some(ClientFiles { certificate: "/b".into(), key: "/c".into() }));
}

/// Goal: what cannot be read is refused with a cure, and no error repeats a secret. Method: one of each.
#[test]
fn a_wrong_address_is_refused_without_showing_secrets() {
    for (text, says) in [
        ("mysql://u:s3cret@h/d", "must begin with postgres://"),
        ("host=h password=s3cret", "must begin with postgres://"),
        ("postgres://u:s3c%zzret@h/d", "password of the address is not percent-encoded"),
        ("postgres://u:s3cret%ff@h/d", "password of the address is not percent-encoded"),
        ("postgres://u:s3%+1cret@h/d", "write % as %25"),
        ("postgres://u:a/s3cret@h/d", "write / as %2F"),
        ("postgres://u:a?s3cret@h/d", "write / as %2F"),
        ("postgres://u:s3cret@h:x/d", "no number from 1 to 65535"),
        ("postgres://u:s3cret@h:0/d", "no number from 1 to 65535"),
        ("postgres://h:s3cret", "in user and password write : as %3A"),
        ("postgres://u:s3cret@a,b,c/d?port=1,2", "names 3 hosts and 2 ports"),
        ("postgres://u:s3cret@h/d?ssl_mode=require", "did you mean sslmode?"),
        ("postgres://u:s3cret@h/d?conect_timeout=1", "did you mean connect_timeout?"),
        ("postgres://u:s3cret@h/d?sslmode=on", "verify-full"),
        ("postgres://u:s3cret@h/d?connect_timeout=soon", "a number of seconds"),
        ("postgres://u:s3cret@h/d?target_session_attrs=x", "read-write"),
        ("postgres://u:s3cret@h/d?channel_binding=x", "require"),
        ("postgres://u:s3cret@h/d?sslcert=/a", "belong together"),
        ("postgres://u:s3cret%00@h/d", "password of the address contains a NUL"),
    ] {
        let error = PostgresUrl::parse(text).unwrap_err();
        assert!(error.to_string().contains(says), "{text}: {error}");
        assert!(!error.to_string().contains("s3c") && !format!("{error:?}").contains("s3c"), "{text}: {error}");
        assert_eq!(error.code(), "HX4200");
    }
}

/// Goal: an address shows no password, however it is printed. Method: all ways of printing.
#[test]
fn the_password_is_never_printed() {
    let url = url("postgres://u:s3cret@h/d?options=-c%20x.y%3Ds3cret");
    for text in [url.to_string(), format!("{url:?}"), url.target()] {
        assert!(!text.contains("s3cret"), "{text}");
    }
    assert!(format!("{url:?}").contains("***"));
}

/// Goal: what may be a part of a password is not shown as the name of a parameter. Method: passwords with a `?` or `&` that was not
/// percent-encoded; a parameter that is only misspelt is named.
#[test]
fn a_part_of_a_password_is_not_taken_for_a_parameter_and_shown() {
    for text in [
        "postgres://me:pw?s3cret",
        "postgres://me:pw?s3cret&x=1",
        "postgres://me@h/d?password=pw&s3cret",
        "postgres://me@h/d?password=pw&s3cret=1",
    ] {
        let error = PostgresUrl::parse(text).expect_err(text).to_string();
        assert!(!error.contains("s3cret"), "{text}: {error}");
    }
    let error = PostgresUrl::parse("postgres://me:pw@h/d?applicatio_name=x").expect_err("a slip").to_string();
    assert!(error.contains("applicatio_name"), "{error}");
}
