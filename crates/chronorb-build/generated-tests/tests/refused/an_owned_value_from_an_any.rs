use chronorb::data::Any;

fn text(any: &Any<'_>) -> Option<String> {
    any.extract::<String>().ok()
}

fn main() {}
