//! ApiVersions: what is served, for clients that have just connected.

use bytes::BytesMut;
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, ApiVersionsResponse};

use crate::api::{ROUTES, Route};
use crate::wire::{self, Request, WireError};

/// The answer to any version: one that is not served gets the oldest body with 35 and what we serve of ApiVersions, so that
/// the client can ask again.
pub(crate) fn answer(request: &mut Request) -> Result<BytesMut, WireError> {
    let version = request.call.version;
    if !request.route.serves(version) {
        let own = ROUTES.iter().filter(|route| route.key == ApiKey::ApiVersions).map(advertised).collect();
        let refusal =
            ApiVersionsResponse::default().with_error_code(ResponseError::UnsupportedVersion.code()).with_api_keys(own);
        return wire::encode(request.correlation_id, 0, &refusal);
    }
    let asked: ApiVersionsRequest = wire::decode(request)?;
    wire::encode(request.correlation_id, version, &respond(version, &asked))
}

fn respond(version: i16, asked: &ApiVersionsRequest) -> ApiVersionsResponse {
    let named = [&asked.client_software_name, &asked.client_software_version];
    if version >= 3 && !named.into_iter().all(|name| is_software_name(name)) {
        return ApiVersionsResponse::default().with_error_code(ResponseError::InvalidRequest.code());
    }
    ApiVersionsResponse::default().with_api_keys(ROUTES.iter().map(advertised).collect())
}

fn advertised(route: &Route) -> ApiVersion {
    ApiVersion::default()
        .with_api_key(route.key as i16)
        .with_min_version(route.advertised_min)
        .with_max_version(route.max)
}

/// Kafka's pattern: letters and digits, inside also `-` and `.`.
fn is_software_name(name: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    match name.as_bytes() {
        [] => false,
        bytes @ ([only] | [only, .., _]) => {
            only.is_ascii_alphanumeric()
                && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
                && bytes.iter().all(inner)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: clients name themselves as Kafka demands. Method: good and bad names, on both versions of the rule.
    #[test]
    fn a_client_with_an_odd_software_name_gets_42() {
        for name in ["a", "apache-kafka-java", "librdkafka", "2.12.1", "a-.b"] {
            assert!(is_software_name(name), "{name}");
        }
        for name in ["", "-a", "a-", ".", "a b", "ü", "a\n"] {
            assert!(!is_software_name(name), "{name}");
        }
        let nameless = ApiVersionsRequest::default();
        assert_eq!(respond(3, &nameless).error_code, 42);
        assert_eq!(respond(2, &nameless).error_code, 0);
    }
}
