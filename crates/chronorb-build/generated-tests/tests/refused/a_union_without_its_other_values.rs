use chronorb_generated_tests::unions::choice::Small;

fn size(small: Small) -> f64 {
    match small {
        Small::Number(number) => number.into(),
        Small::Ratio(ratio) => ratio,
        Small::Octets(octets) => octets.len() as f64,
    }
}

fn main() {}
