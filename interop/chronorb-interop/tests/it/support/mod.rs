//! Programs of both ORBs, and their prerequisites.

pub(crate) mod jacorb;
pub(crate) mod peers;
mod process;
pub(crate) mod programs;

pub(crate) use process::Process;

/// Returns the name of a test, by which this program runs it alone (`--exact`) when it starts
/// itself.
pub(crate) fn name_of<T>(_test: T) -> &'static str {
    let path = std::any::type_name::<T>();
    path.split_once("::").expect("it is in a module").1
}
