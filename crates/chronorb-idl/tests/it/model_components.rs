//! Components, homes, ports and events in the model: their equivalent interfaces.

use chronorb_idl::model::{
    DefId, DefKind, Definition, Interface, InterfaceOrigin, Model, Operation, Type, ValueType,
};
use chronorb_idl::{Options, compile_text};

fn model(text: &str) -> Model {
    match compile_text("test.idl", text, &Options::default()) {
        Ok(compilation) => compilation.model,
        Err(failure) => panic!("{failure}"),
    }
}

fn find<'a>(model: &'a Model, name: &str) -> (DefId, &'a Definition) {
    model
        .iter()
        .find(|(_, definition)| definition.scoped_name.join("::") == name)
        .unwrap_or_else(|| panic!("there is no {name}"))
}

fn interface<'a>(model: &'a Model, name: &str) -> &'a Interface {
    match &find(model, name).1.kind {
        DefKind::Interface(interface) => interface,
        other => panic!("{name} is {other:?}"),
    }
}

fn name(model: &Model, id: DefId) -> String {
    model.get(id).scoped_name.join("::")
}

fn type_name(model: &Model, ty: &Type) -> String {
    match ty {
        Type::Named(id) => name(model, *id),
        other => format!("{other:?}"),
    }
}

/// Returns an operation in IDL syntax.
fn written(model: &Model, operation: &Operation) -> String {
    let result = operation.result.as_ref();
    let result = result.map_or_else(|| "void".to_owned(), |ty| type_name(model, ty));
    let params: Vec<_> = operation
        .params
        .iter()
        .map(|param| format!("in {} {}", type_name(model, &param.ty), param.name))
        .collect();
    let raises: Vec<_> = operation.raises.iter().map(|id| name(model, *id)).collect();
    let raises = if raises.is_empty() {
        String::new()
    } else {
        format!(
            " raises ({})",
            raises.join(", ").replace("Components::", "")
        )
    };
    format!("{result} {}({}){raises}", operation.name, params.join(", "))
}

fn operations(model: &Model, of: &str) -> Vec<String> {
    let operations = &interface(model, of).operations;
    operations.iter().map(|o| written(model, o)).collect()
}

fn bases(model: &Model, of: &str) -> Vec<String> {
    let bases = &interface(model, of).bases;
    bases.iter().map(|id| name(model, *id)).collect()
}

#[test]
fn a_component_is_an_interface_with_operations_for_its_ports() {
    let model = model(
        r"
        interface I { };
        interface J { };
        eventtype E { };
        component Base { };
        component C : Base supports J {
          /// The first.
          provides I a;
          uses I b;
          emits E d;
          publishes E e;
          consumes E f;
          attribute long g;
        };
        ",
    );
    assert_eq!(interface(&model, "C").origin, InterfaceOrigin::Component);
    assert_eq!(bases(&model, "Base"), ["Components::CCMObject"]);
    assert_eq!(bases(&model, "C"), ["Base", "J"]);
    assert_eq!(
        operations(&model, "C"),
        [
            "I provide_a()",
            "void connect_b(in I conxn) raises (AlreadyConnected, InvalidConnection)",
            "I disconnect_b() raises (NoConnection)",
            "I get_connection_b()",
            "void connect_d(in EConsumer consumer) raises (AlreadyConnected)",
            "EConsumer disconnect_d() raises (NoConnection)",
            "Components::Cookie subscribe_e(in EConsumer consumer) raises \
            (ExceededConnectionLimit)",
            "EConsumer unsubscribe_e(in Components::Cookie ck) raises (InvalidConnection)",
            "EConsumer get_consumer_f()",
        ]
    );
    let component = interface(&model, "C");
    assert_eq!(component.operations[0].doc.as_deref(), Some("The first."));
    assert_eq!(component.attributes[0].name, "g");
    assert_eq!(find(&model, "C").1.repository_id, "IDL:C:1.0");
}

#[test]
fn a_port_for_several_connections_has_a_list_of_them() {
    let model = model("interface I { }; module M { component C { uses multiple I all; }; };");
    assert_eq!(
        operations(&model, "M::C"),
        [
            "Components::Cookie connect_all(in I connection) raises (ExceededConnectionLimit, \
            InvalidConnection)",
            "I disconnect_all(in Components::Cookie ck) raises (InvalidConnection)",
            "M::C::allConnections get_connections_all()",
        ]
    );
    let DefKind::Struct { members, .. } = &find(&model, "M::C::allConnection").1.kind else {
        panic!("not a struct");
    };
    let members: Vec<_> = members
        .iter()
        .map(|member| (member.name.as_str(), type_name(&model, &member.ty)))
        .collect();
    assert_eq!(
        members,
        [
            ("objref", "I".to_owned()),
            ("ck", "Components::Cookie".to_owned())
        ]
    );
    let list = find(&model, "M::C::allConnections").1;
    assert_eq!(list.repository_id, "IDL:M/C/allConnections:1.0");
}

#[test]
fn an_event_has_a_consumer_and_the_base_of_all_events() {
    let model = model("module M { eventtype E { public long a; }; eventtype F : E { }; };");
    let value = |name| match &find(&model, name).1.kind {
        DefKind::Value(value) => value.clone(),
        _ => ValueType::default(),
    };
    let base = find(&model, "Components::EventBase").0;
    assert_eq!(value("M::E").bases, [base]);
    assert_eq!(value("M::E").concrete_base, None);
    assert_eq!(value("M::F").bases, [find(&model, "M::E").0]);
    assert_eq!(value("M::F").concrete_base, Some(find(&model, "M::E").0));
    let consumer = interface(&model, "M::EConsumer");
    assert_eq!(consumer.origin, InterfaceOrigin::Implied);
    assert_eq!(
        bases(&model, "M::EConsumer"),
        ["Components::EventConsumerBase"]
    );
    assert_eq!(
        operations(&model, "M::EConsumer"),
        ["void push_E(in M::E the_E)"]
    );
    assert_eq!(
        operations(&model, "M::FConsumer"),
        ["void push_F(in M::F the_F)"]
    );
}

#[test]
fn a_home_is_its_own_operations_and_those_of_every_home() {
    let model = model(
        r"
        exception Bad { };
        interface I { };
        component C { };
        home H supports I manages C {
          void clear();
          factory make(in long a) raises (Bad);
          finder search(in string text);
        };
        component D : C { };
        home G : H manages D { };
        ",
    );
    assert_eq!(interface(&model, "H").origin, InterfaceOrigin::Home);
    let explicit = interface(&model, "HExplicit");
    assert_eq!(explicit.origin, InterfaceOrigin::HomeExplicit);
    let implicit = interface(&model, "HImplicit");
    assert_eq!(implicit.origin, InterfaceOrigin::HomeImplicit);
    assert_eq!(bases(&model, "H"), ["HExplicit", "HImplicit"]);
    assert_eq!(bases(&model, "HExplicit"), ["Components::CCMHome", "I"]);
    assert_eq!(bases(&model, "HImplicit"), ["Components::KeylessCCMHome"]);
    assert_eq!(
        operations(&model, "HExplicit"),
        [
            "void clear()",
            "C make(in Long a) raises (CreateFailure, Bad)",
            "C search(in String { bound: None } text) raises (FinderFailure)",
        ]
    );
    assert_eq!(
        operations(&model, "HImplicit"),
        ["C create() raises (CreateFailure)"]
    );
    assert_eq!(bases(&model, "GExplicit"), ["HExplicit"]);
    assert_eq!(
        operations(&model, "GImplicit"),
        ["D create() raises (CreateFailure)"]
    );
}

#[test]
fn a_home_with_a_key_finds_and_removes_by_it() {
    let model = model(
        r"
        valuetype K : Components::PrimaryKeyBase { public long a; };
        component C { };
        home H manages C primarykey K { };
        ",
    );
    assert!(bases(&model, "HImplicit").is_empty());
    assert_eq!(
        operations(&model, "HImplicit"),
        [
            "C create(in K key) raises (CreateFailure, DuplicateKeyValue, InvalidKey)",
            "C find_by_primary_key(in K key) raises (FinderFailure, UnknownKeyValue, InvalidKey)",
            "void remove(in K key) raises (RemoveFailure, UnknownKeyValue, InvalidKey)",
            "K get_primary_key(in C comp)",
        ]
    );
}

#[test]
fn a_port_of_a_port_type_is_all_ports_of_it() {
    let model = model(
        r"
        interface I { };
        interface J { };
        porttype P { provides I give; uses J take; attribute long limit; };
        porttype Q { port P p; mirrorport P q; };
        component C { port P a; mirrorport P b; mirrorport Q c; };
        connector D { uses I e; };
        ",
    );
    let names: Vec<_> = interface(&model, "C")
        .operations
        .iter()
        .map(|operation| operation.name.as_str())
        .filter(|name| !name.starts_with("disconnect") && !name.starts_with("get_"))
        .collect();
    assert_eq!(
        names,
        [
            "provide_a_give",
            "connect_a_take",
            "connect_b_give",
            "provide_b_take",
            "connect_c_p_give",
            "provide_c_p_take",
            "provide_c_q_give",
            "connect_c_q_take",
        ]
    );
    let attributes: Vec<_> = interface(&model, "C")
        .attributes
        .iter()
        .map(|attribute| attribute.name.as_str())
        .collect();
    assert_eq!(attributes, ["a_limit", "b_limit", "c_p_limit", "c_q_limit"]);
    assert_eq!(interface(&model, "D").origin, InterfaceOrigin::Component);
}

#[test]
fn what_components_imply_comes_from_the_compilers_own_files() {
    let model = model("component C { };");
    let (_, object) = find(&model, "Components::CCMObject");
    assert_eq!(object.repository_id, "IDL:omg.org/Components/CCMObject:1.0");
    assert!(!object.in_main_file);
    assert_eq!(
        model.path(&object.location).unwrap().to_str(),
        Some("<Components.idl>")
    );
    assert_eq!(model.files_on_disk().count(), 1);
    assert!(find(&model, "C").1.in_main_file);
}

#[test]
fn a_file_may_bring_its_own_components() {
    let text = "
        module Components { interface CCMObject { void mine(); }; };
        component C { };
        ";
    let model = model(text);
    assert_eq!(operations(&model, "Components::CCMObject"), ["void mine()"]);
    assert_eq!(model.files.len(), 1);
}
