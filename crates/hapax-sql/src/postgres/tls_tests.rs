//! Tests of `tls`.
