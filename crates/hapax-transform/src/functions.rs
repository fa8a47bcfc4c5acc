//! The functions a transform may call: a white list, and the reason for each function that is not on it.
//!
//! Invariant: what is offered depends on its arguments alone, so that an input gives the same events after a crash. A
//! function that a new version of VRL brings is on neither list, is not offered, and a test says so.

use vrl::compiler::Function;
use vrl::stdlib;

/// Why a function is not offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It reads the clock, if only for the current year.
    Clock,
    /// It draws random numbers.
    Randomness,
    /// It reads environment variables, the host's name or its time zone.
    Environment,
    /// It asks the network.
    Network,
    /// It reads files.
    Files,
    /// It has an effect outside the event.
    Effect,
    /// Its result depends on the order of a hash table, which is another one in every process.
    HashOrder,
    /// It looks into the compiler, not at the event.
    Compiler,
    /// It is not built into this program.
    NotBuilt,
}

impl Reason {
    /// What the function does that a transform must not.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::Clock => "reads the clock",
            Self::Randomness => "draws random numbers",
            Self::Environment => "reads the surroundings of the process",
            Self::Network => "asks the network",
            Self::Files => "reads files",
            Self::Effect => "has an effect outside the event",
            Self::HashOrder => "depends on the order of a hash table",
            Self::Compiler => "describes the program, not the event",
            Self::NotBuilt => "is not built into Hapax",
        }
    }

    /// What to do instead.
    #[must_use]
    pub const fn cure(self) -> &'static str {
        match self {
            Self::Clock => {
                "take a time from a field of the event, and parse it with parse_timestamp!(.field, \"format\")"
            }
            Self::Randomness => "let the source give the event an id, or let the target draw it as a default",
            Self::Environment => "write the value into the program, or let the source put it into the event",
            Self::Network => "bring what it would ask for into the event before it reaches Hapax",
            Self::Files => "write what the file says into the program",
            Self::Effect => "remove it; `hapax tap` shows events as they pass",
            Self::HashOrder => "calculate it where the event is made",
            Self::Compiler => "remove it",
            Self::NotBuilt => "calculate it where the event is made, or in the target",
        }
    }
}

/// Functions that VRL has and a transform does not get.
pub const REFUSED: &[(&str, Reason)] = &[
    ("crc", Reason::NotBuilt),
    ("decrypt", Reason::NotBuilt),
    ("decrypt_ip", Reason::NotBuilt),
    ("dns_lookup", Reason::Network),
    ("encode_proto", Reason::Files),
    ("encrypt", Reason::NotBuilt),
    ("encrypt_ip", Reason::NotBuilt),
    ("get_enrichment_table_record", Reason::Files),
    ("find_enrichment_table_records", Reason::Files),
    ("get_env_var", Reason::Environment),
    ("get_hostname", Reason::Environment),
    ("get_secret", Reason::Environment),
    ("get_timezone_name", Reason::Environment),
    ("hmac", Reason::NotBuilt),
    ("http_request", Reason::Network),
    ("log", Reason::Effect),
    ("md5", Reason::NotBuilt),
    ("now", Reason::Clock),
    ("parse_cef", Reason::HashOrder),
    ("parse_etld", Reason::Files),
    ("parse_groks", Reason::Clock),
    ("parse_klog", Reason::Clock),
    ("parse_linux_authorization", Reason::Clock),
    ("parse_proto", Reason::Files),
    ("parse_syslog", Reason::Clock),
    ("random_bool", Reason::Randomness),
    ("random_bytes", Reason::Randomness),
    ("random_float", Reason::Randomness),
    ("random_int", Reason::Randomness),
    ("remove_secret", Reason::Effect),
    ("reverse_dns", Reason::Network),
    ("seahash", Reason::NotBuilt),
    ("set_secret", Reason::Effect),
    ("set_semantic_meaning", Reason::Effect),
    ("sha1", Reason::NotBuilt),
    ("sha2", Reason::NotBuilt),
    ("sha3", Reason::NotBuilt),
    ("shannon_entropy", Reason::HashOrder),
    ("type_def", Reason::Compiler),
    ("uuid_v4", Reason::Randomness),
    ("uuid_v7", Reason::Clock),
    ("validate_json_schema", Reason::Files),
    ("xxhash", Reason::NotBuilt),
];

/// Why `name` is not offered, if VRL has it.
#[must_use]
pub fn refusal(name: &str) -> Option<Reason> {
    REFUSED.iter().find(|(refused, _)| *refused == name).map(|(_, reason)| *reason)
}

/// Functions that read a time zone from an argument, which must be a name and not `local`: the process's own zone is
/// not the event's. Without the argument the zone is UTC.
pub(crate) const ZONED: [&str; 2] = ["format_timestamp", "parse_timestamp"];

macro_rules! offer {
    ($($function:ident),* $(,)?) => {
        /// The functions that are offered.
        #[must_use]
        pub fn offered() -> Vec<Box<dyn Function>> {
            vec![$(Box::new(stdlib::$function)),*]
        }
    };
}

offer![
    Abs,
    Append,
    Array,
    Assert,
    AssertEq,
    BaseName,
    Boolean,
    Camelcase,
    Ceil,
    Chunks,
    CommunityID,
    Compact,
    Contains,
    ContainsAll,
    DecodeBase16,
    DecodeBase64,
    DecodeCharset,
    DecodeGzip,
    DecodeLz4,
    DecodeMimeQ,
    DecodePercent,
    DecodePunycode,
    DecodeSnappy,
    DecodeZlib,
    DecodeZstd,
    Del,
    DirName,
    Downcase,
    EncodeBase16,
    EncodeBase64,
    EncodeCharset,
    EncodeCsv,
    EncodeGzip,
    EncodeJson,
    EncodeKeyValue,
    EncodeLogfmt,
    EncodeLz4,
    EncodePercent,
    EncodePunycode,
    EncodeSnappy,
    EncodeZlib,
    EncodeZstd,
    EndsWith,
    Exists,
    Filter,
    Find,
    Flatten,
    Float,
    Floor,
    ForEach,
    FormatInt,
    FormatNumber,
    FormatTimestamp,
    FromEntries,
    FromUnixTimestamp,
    Get,
    Haversine,
    Includes,
    Integer,
    IpAton,
    IpCidrContains,
    IpNtoa,
    IpNtop,
    IpPton,
    IpSubnet,
    IpToIpv6,
    Ipv6ToIpV4,
    IsArray,
    IsBoolean,
    IsEmpty,
    IsFloat,
    IsInteger,
    IsIpv4,
    IsIpv6,
    IsJson,
    IsNull,
    IsNullish,
    IsObject,
    IsRegex,
    IsString,
    IsTimestamp,
    Join,
    Kebabcase,
    Keys,
    Length,
    MapKeys,
    MapValues,
    Match,
    MatchAny,
    MatchArray,
    MatchDatadogQuery,
    Merge,
    Mod,
    Object,
    ObjectFromArray,
    ParseApacheLog,
    ParseAwsAlbLog,
    ParseAwsCloudWatchLogSubscriptionMessage,
    ParseAwsVpcFlowLog,
    ParseBytes,
    ParseCbor,
    ParseCommonLog,
    ParseCsv,
    ParseDuration,
    ParseFloat,
    ParseGlog,
    ParseGrok,
    ParseInfluxDB,
    ParseInt,
    ParseJson,
    ParseKeyValue,
    ParseLogFmt,
    ParseNginxLog,
    ParseQueryString,
    ParseRegex,
    ParseRegexAll,
    ParseRubyHash,
    ParseTimestamp,
    ParseTokens,
    ParseUrl,
    ParseUserAgent,
    ParseXml,
    ParseYaml,
    Pascalcase,
    Pop,
    Push,
    Range,
    Redact,
    Remove,
    Replace,
    ReplaceWith,
    Round,
    ScreamingSnakecase,
    Set,
    Sieve,
    Slice,
    Snakecase,
    Split,
    SplitPath,
    StartsWith,
    String,
    StripAnsiEscapeCodes,
    StripWhitespace,
    Strlen,
    TagTypesExternally,
    Tally,
    TallyValue,
    Timestamp,
    ToBool,
    ToEntries,
    ToFloat,
    ToInt,
    ToRegex,
    ToString,
    ToSyslogFacility,
    ToSyslogFacilityCode,
    ToSyslogLevel,
    ToSyslogSeverity,
    ToUnixTimestamp,
    Truncate,
    Unflatten,
    Unique,
    Unnest,
    Upcase,
    UuidFromFriendlyId,
    Values,
    Zip,
];

#[cfg(test)]
#[path = "functions_tests.rs"]
mod tests;
