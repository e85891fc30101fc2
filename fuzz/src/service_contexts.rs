//! The contents of service contexts.

use chronorb_giop::{EndTimes, SchedulingContext, contexts};

/// Reads any content of a service context. The first octet selects the context. What could be read
/// is the same after it was written and read again.
pub fn service_contexts(data: &[u8]) {
    let Some((kind, content)) = data.split_first() else {
        return;
    };
    match kind % 5 {
        0 => scheduling(content),
        1 => {
            if let Ok(ends) = EndTimes::decode(content) {
                let mut room = [0; EndTimes::LARGEST];
                assert_eq!(EndTimes::decode(ends.encode(&mut room)), Ok(ends));
            }
        }
        2 => {
            if let Ok(points) = contexts::decode_listen_points(content) {
                assert!(points.len() <= content.len());
                let pairs = points.iter().map(|point| (point.host.as_str(), point.port));
                if let Ok(written) = contexts::encode_listen_points(pairs) {
                    assert_eq!(contexts::decode_listen_points(&written), Ok(points));
                }
            }
        }
        3 => {
            if let Ok(priority) = contexts::decode_priority(content) {
                let written = contexts::encode_priority(priority);
                assert_eq!(contexts::decode_priority(&written), Ok(priority));
            }
        }
        _ => {
            if let Ok((low, high)) = contexts::decode_priority_range(content) {
                let written = contexts::encode_priority_range(low, high);
                assert_eq!(contexts::decode_priority_range(&written), Ok((low, high)));
            }
        }
    }
}

fn scheduling(content: &[u8]) {
    if let Ok(Some(context)) = SchedulingContext::decode(content) {
        let written = context.encode();
        assert_eq!(SchedulingContext::decode(&written), Ok(Some(context)));
        let left = context.remaining(None);
        assert_eq!(left, context.relative);
        let mut patched = written;
        let tai = context.absolute.map(|absolute| absolute.tai);
        SchedulingContext::patch(&mut patched, context.relative, tai, context.execution);
        assert_eq!(patched, written);
    }
}
