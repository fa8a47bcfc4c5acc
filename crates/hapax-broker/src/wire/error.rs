//! What can be wrong with bytes of strangers.

/// Why bytes were not taken as a request; the connection is closed and the log says so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// More than is taken.
    #[error("a frame of {length} bytes was announced, between 8 and {max} are taken")]
    FrameLength {
        /// What the first four bytes say.
        length: i32,
        /// What is taken of this API.
        max: usize,
    },
    /// The peer stopped in the middle.
    #[error("the peer left in the middle of a frame")]
    FrameCut,
    /// A value reaches beyond the frame.
    #[error("a value reaches beyond the end of the frame")]
    TooShort,
    /// A varint of more than five bytes.
    #[error("a number is longer than 32 bits")]
    Varint,
    /// A length that no value has.
    #[error("a length of {0} is impossible")]
    Length(i64),
    /// A count that the rest of the frame cannot hold.
    #[error("{count} elements cannot be in the {remaining} bytes that remain")]
    Count {
        /// What was claimed.
        count: u32,
        /// What is there.
        remaining: usize,
    },
    /// More tagged fields than anyone needs.
    #[error("more than {0} tagged fields in one request")]
    Tags(usize),
    /// A tagged field that this version has not, or whose size is not the size of its value.
    #[error("tagged field {0} is not in this version, or has another size than it says")]
    Tag(u32),
    /// More elements than anyone needs.
    #[error("more than {0} elements in the lists of one request")]
    Elements(usize),
    /// A text that is not UTF-8.
    #[error("a text is not UTF-8")]
    Text,
    /// Nobody here serves this API.
    #[error("API {key} is not served (version {version} was asked)")]
    UnknownApi {
        /// The number of the API.
        key: i16,
        /// The version asked.
        version: i16,
    },
    /// The API is served, the version is not.
    #[error("{api} is served in versions {min} to {max}, {version} was asked")]
    UnknownVersion {
        /// The API.
        api: &'static str,
        /// The oldest version served.
        min: i16,
        /// The newest version served.
        max: i16,
        /// The version asked.
        version: i16,
    },
    /// The codec refused the body.
    #[error("{api} version {version} cannot be read: {cause}")]
    Body {
        /// The API.
        api: &'static str,
        /// The version asked.
        version: i16,
        /// What the codec said.
        cause: String,
    },
    /// The codec refused our own answer.
    #[error("an answer cannot be written in version {version}: {cause}")]
    Answer {
        /// The version asked.
        version: i16,
        /// What the codec said.
        cause: String,
    },
}
