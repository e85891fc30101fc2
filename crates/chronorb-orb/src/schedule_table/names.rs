//! Names of interfaces, from their repository identifiers.

/// Returns the scoped name of an interface without the prefix of its identifier:
/// `Flight::Navigator` for `IDL:acme.com/Flight/Navigator:1.0`; `None` for other forms.
pub(crate) fn scoped(repository_id: &str) -> Option<String> {
    let (names, _) = parts(repository_id)?;
    Some(names.join("::"))
}

/// Returns the identifier without a prefix, with the version.
pub(crate) fn without_prefix(repository_id: &str) -> Option<String> {
    let (names, version) = parts(repository_id)?;
    Some(format!("IDL:{}:{version}", names.join("/")))
}

fn parts(repository_id: &str) -> Option<(Vec<&str>, &str)> {
    let (path, version) = repository_id.strip_prefix("IDL:")?.rsplit_once(':')?;
    // Names in IDL have no dots, prefixes are domains.
    let names = path.split('/').skip_while(|part| part.contains('.'));
    let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
    (!names.is_empty()).then_some((names, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scoped_names_have_no_prefix_and_no_version() {
        for (id, expected) in [
            ("IDL:Quoter:1.0", Some("Quoter")),
            ("IDL:Flight/Navigator:2.1", Some("Flight::Navigator")),
            (
                "IDL:acme.com/Flight/Navigator:1.0",
                Some("Flight::Navigator"),
            ),
            ("IDL:omg.org:1.0", None),
            ("IDL::1.0", None),
            ("RMI:java.lang.Object:00", None),
            ("IDL:Quoter", None),
        ] {
            assert_eq!(scoped(id).as_deref(), expected, "{id}");
        }
        let id = without_prefix("IDL:acme.com/Flight/Navigator:2.1");
        assert_eq!(id.as_deref(), Some("IDL:Flight/Navigator:2.1"));
    }
}
