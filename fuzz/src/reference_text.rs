use chronorb_giop::codesets::{CodeSetComponentInfo, text_form};
use chronorb_giop::url::{CorbalocPlace, ObjectUrl};
use chronorb_giop::{
    Component, IiopProfile, Ior, TAG_ALTERNATE_IIOP_ADDRESS, TAG_CODE_SETS, TAG_INTERNET_IOP,
    TAG_ORB_TYPE, TAG_POLICIES, TAG_TAO_ENDPOINTS, TaggedComponent, Target, UipmcProfile, Version,
    parse_group_url,
};

/// Reads `data` as the text of an object reference, and also as the octets of
/// a reference, of a profile and of each component. What could be read is
/// written and read once more.
pub fn reference_text(data: &[u8]) {
    if let Ok(text) = str::from_utf8(data) {
        read_text(text);
    }
    if let Ok(ior) = Ior::from_encapsulation(data) {
        check(&ior);
    }
    check_profile(data);
    if let Ok(profile) = UipmcProfile::decode(data) {
        let again = profile.encode().expect("what was read can be written");
        assert_eq!(UipmcProfile::decode(&again), Ok(profile));
    }
    for tag in TAGS {
        check_component(&TaggedComponent {
            tag,
            data: data.to_vec(),
        });
    }
}

fn read_text(text: &str) {
    if let Ok(Some(group)) = parse_group_url(text) {
        check(&group);
        let profile = UipmcProfile::decode(&group.profiles[0].data).expect("it was written");
        profile.group().expect("it is a group");
    }
    let url = ObjectUrl::parse(text);
    match (&url, text.parse::<Ior>()) {
        (Ok(ObjectUrl::Ior(url)), ior) => assert_eq!(Ok(url), ior.as_ref()),
        (_, ior) => assert!(ior.is_err(), "the URL and the reference disagree"),
    }
    match url {
        Ok(ObjectUrl::Ior(ior)) => check(&ior),
        Ok(ObjectUrl::Corbaloc { addresses, .. }) => {
            assert!(!addresses.is_empty());
            for address in addresses {
                assert_eq!(address.version.major, 1);
                if let CorbalocPlace::Host { host, port } = address.place {
                    assert!(!host.is_empty());
                    assert_ne!(port, 0);
                }
            }
        }
        Ok(_) => {}
        Err(error) => {
            assert!(!error.to_string().is_empty());
            error.minor();
        }
    }
}

fn check(ior: &Ior) {
    let text = ior.to_string();
    assert_eq!(
        text.parse().as_ref(),
        Ok(ior),
        "{text} is another reference"
    );
    for (index, profile) in ior.profiles.iter().enumerate() {
        let view = profile.as_view();
        let key = Target::Profile(view).key();
        let index = u32::try_from(index).expect("a reference is small");
        assert_eq!(Target::Reference { index, ior }.key(), key);
        if profile.tag == TAG_INTERNET_IOP {
            check_profile(&profile.data);
            if let Ok(profile) = IiopProfile::decode(&profile.data) {
                assert_eq!(key, Some(&*profile.object_key));
            }
        }
    }
}

fn check_profile(data: &[u8]) {
    let Ok(profile) = IiopProfile::decode(data) else {
        return;
    };
    let again = profile.encode().map(|data| IiopProfile::decode(&data));
    assert_eq!(again, Ok(Ok(profile.clone())));
    for component in &profile.components {
        check_component(component);
    }
}

fn check_component(component: &TaggedComponent) {
    let Ok(typed) = component.typed() else {
        return;
    };
    let again = typed.tagged().map(|tagged| tagged.typed());
    assert_eq!(again, Ok(Ok(typed.clone())));
    match typed {
        Component::CodeSets(info) => {
            let _ = text_form(&CodeSetComponentInfo::ours(), Some(&info), Version::V1_2);
        }
        Component::Policies(policies) => {
            policies.priority_model();
        }
        _ => {}
    }
}

const TAGS: [u32; 5] = [
    TAG_ORB_TYPE,
    TAG_CODE_SETS,
    TAG_POLICIES,
    TAG_ALTERNATE_IIOP_ADDRESS,
    TAG_TAO_ENDPOINTS,
];
