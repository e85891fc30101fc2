//! `chronorb ns export`: the bindings of a name server as text.

use std::sync::Arc;

use chronorb_giop::Ior;
use chronorb_naming::{Binding, BindingKind, Change, ChangeError, Target, Tree, export_text};
use chronorb_orb::{Object, OrbConfig};
use chronorb_rt::{Monotonic, visible, write_file};

use super::arguments::ExportArguments;
use super::names::{NameServer, NsError};
use super::survey::{ContextProblem, HomeServer, Survey, SurveyBinding};
use crate::output::{print_octets, report};

/// Exports all bindings; `false` where some are not in the text.
pub(super) fn run(arguments: &ExportArguments, config: OrbConfig) -> Result<bool, NsError> {
    let names = NameServer::connect(&arguments.server, config)?.bounded(&arguments.bound);
    let mut home = HomeServer::of(&names)?;
    let survey = Survey::take(&names, &mut home, arguments.follow)?;
    let tree = tree_of(&survey)?;
    let mut text = Vec::new();
    let summary = export_text(&tree, &mut text)?;
    match arguments
        .file
        .as_deref()
        .filter(|file| file.as_os_str() != "-")
    {
        None => print_octets(&text)?,
        Some(file) => write_file(file, &text).map_err(|source| NsError::File {
            file: file.to_owned(),
            source,
        })?,
    }
    for (number, context) in survey.contexts.iter().enumerate() {
        if let Some(ContextProblem::Elsewhere(cause)) = &context.problem {
            let name = survey.name(number);
            let name = visible(&name);
            report(format_args!(
                "{name} is exported as a reference to its server: {cause}"
            ));
        }
    }
    if summary.omitted > 0 {
        let omitted = summary.omitted;
        eprintln!("chronorb: {omitted} bindings are omitted; comments in the text name them");
    }
    Ok(summary.omitted == 0)
}

/// Returns the state of a server that has the same bindings.
fn tree_of(survey: &Survey) -> Result<Tree, NsError> {
    let now = Monotonic::now();
    let mut tree = Tree::new(1);
    let mut apply = |change| {
        let applied = tree.apply(&change, now);
        applied.map_err(|cause: ChangeError| NsError::Inconsistent(cause))
    };
    // A context whose problem is known is not created, so bindings to it are omitted.
    for (number, context) in survey.contexts.iter().enumerate().skip(1) {
        if context.problem.is_none() {
            apply(Change::CreateContext {
                context: number as u64,
            })?;
        }
    }
    for (number, context) in survey.contexts.iter().enumerate() {
        for binding in &context.bindings {
            apply(Change::Bind {
                context: number as u64,
                id: binding.component.id.clone().into(),
                kind: binding.component.kind.clone().into(),
                binding: Binding {
                    kind: if binding.is_context {
                        BindingKind::Context
                    } else {
                        BindingKind::Object
                    },
                    target: target_of(survey, binding)?,
                    lease: None,
                },
            })?;
        }
    }
    Ok(tree)
}

fn target_of(survey: &Survey, binding: &SurveyBinding) -> Result<Target, NsError> {
    let object = binding.object.as_ref();
    let number = object.and_then(|object| survey.number(object));
    if let Some(number) = number
        && !matches!(
            survey.contexts[number].problem,
            Some(ContextProblem::Elsewhere(_))
        )
    {
        return Ok(Target::Context(number as u64));
    }
    let nil = Ior::nil();
    let octets = object.map_or(&nil, Object::ior).to_encapsulation();
    let octets = octets.map_err(NsError::Reference)?;
    Ok(Target::Reference(Arc::from(octets)))
}
