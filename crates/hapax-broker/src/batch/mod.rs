//! Record batches: header, checks, offsets written in, records walked, compression.
