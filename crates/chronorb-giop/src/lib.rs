//! GIOP messages, object references, URLs and framing for chronorb.
