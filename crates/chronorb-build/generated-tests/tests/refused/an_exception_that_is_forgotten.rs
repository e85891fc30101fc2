use chronorb_generated_tests::types::house::FirstError;

fn told(error: FirstError) -> &'static str {
    match error {
        FirstError::Busy(_) => "busy",
        FirstError::System(_) => "system",
    }
}

fn main() {}
