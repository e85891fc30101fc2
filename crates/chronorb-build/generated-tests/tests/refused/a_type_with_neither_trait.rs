use chronorb_generated_tests::owned::types::house::FailingSkeleton;

struct Forgotten;

fn main() {
    FailingSkeleton::new(Forgotten);
}
