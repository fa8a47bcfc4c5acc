//! Bytes to requests and back: frames, the guard before decoding, headers.
