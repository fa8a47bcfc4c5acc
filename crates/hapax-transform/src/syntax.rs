//! A walk over a parsed program: what it calls, assigns, removes and looks at. Says nothing about what is allowed.

use vrl::diagnostic::Span;
use vrl::parser::ast::{
    Assignment, AssignmentOp, AssignmentTarget, Block, Container, Expr, FunctionCall, Literal, Node, Predicate, Query,
    QueryTarget, RootExpr, Unary,
};
use vrl::path::{OwnedSegment, OwnedValuePath, PathPrefix};

/// An assignment to the event.
#[derive(Debug)]
pub(crate) struct Assigned {
    pub(crate) path: Vec<OwnedSegment>,
    pub(crate) span: Span,
    pub(crate) op: AssignmentOp,
    /// What is assigned; none for the error of an assignment with two targets.
    pub(crate) expr: Option<Node<Expr>>,
}

/// A call of a function.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) call: FunctionCall,
    pub(crate) span: Span,
    /// Whether nobody uses its result.
    pub(crate) use_of: Use,
}

/// Whether an expression's value is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It stands by itself.
    Statement,
    /// It is a part of something.
    Value,
}

/// What a program does.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) calls: Vec<Call>,
    pub(crate) assigned: Vec<Assigned>,
    /// Places where the event's metadata is named: there is none.
    pub(crate) metadata: Vec<Span>,
    /// The `.` that a program ends with, which reads nothing: the event is the result anyway.
    pub(crate) last_root: Option<Span>,
    /// Whether a part of the text could not be parsed.
    pub(crate) broken: bool,
}

/// What the program does; expressions that could not be parsed are left out.
pub(crate) fn facts(program: &vrl::parser::Program) -> Facts {
    let mut facts = Facts::default();
    let expressions: Vec<&Node<Expr>> = program
        .iter()
        .filter_map(|root| match root.inner() {
            RootExpr::Expr(expr) => Some(expr),
            RootExpr::Error(_) => None,
        })
        .collect();
    facts.broken = expressions.len() < program.len();
    for expr in &expressions {
        facts.walk(expr, Use::Statement);
    }
    facts.last_root = expressions.last().filter(|expr| is_root(expr)).map(|expr| expr.span());
    facts
}

/// The path of a query into the event, if that is what `expr` is.
pub(crate) fn event_path(expr: &Node<Expr>) -> Option<&[OwnedSegment]> {
    let Expr::Query(query) = expr.inner() else { return None };
    query_path(query.inner()).map(|path| path.segments.as_slice())
}

fn query_path(query: &Query) -> Option<&OwnedValuePath> {
    match query.target.inner() {
        QueryTarget::External(PathPrefix::Event) => Some(query.path.inner()),
        QueryTarget::External(PathPrefix::Metadata)
        | QueryTarget::Internal(_)
        | QueryTarget::FunctionCall(_)
        | QueryTarget::Container(_) => None,
    }
}

fn is_root(expr: &Node<Expr>) -> bool {
    event_path(expr).is_some_and(<[OwnedSegment]>::is_empty)
}

/// A literal string without variables in it.
pub(crate) fn literal_text(expr: &Node<Expr>) -> Option<String> {
    let Expr::Literal(literal) = expr.inner() else { return None };
    match literal.inner() {
        Literal::RawString(text) => Some(text.clone()),
        Literal::String(template) => match template.0.as_slice() {
            [] => Some(String::new()),
            [vrl::parser::template_string::StringSegment::Literal(text, _)] => Some(text.clone()),
            _ => None,
        },
        Literal::Integer(_)
        | Literal::Float(_)
        | Literal::Boolean(_)
        | Literal::Regex(_)
        | Literal::Timestamp(_)
        | Literal::Null => None,
    }
}

impl Facts {
    fn walk(&mut self, expr: &Node<Expr>, used: Use) {
        match expr.inner() {
            Expr::Literal(_) | Expr::Variable(_) | Expr::Break(_) => {}
            Expr::Container(container) => self.container(container.inner(), used),
            Expr::IfStatement(statement) => {
                match statement.predicate.inner() {
                    Predicate::One(expr) => self.walk(expr, Use::Value),
                    Predicate::Many(all) => all.iter().for_each(|expr| self.walk(expr, Use::Value)),
                }
                self.block(statement.if_node.inner(), used);
                if let Some(block) = &statement.else_node {
                    self.block(block.inner(), used);
                }
            }
            Expr::Op(op) => {
                self.walk(&op.0, Use::Value);
                self.walk(&op.2, Use::Value);
            }
            Expr::Assignment(assignment) => self.assignment(assignment.inner()),
            Expr::Query(query) => self.query(query),
            Expr::FunctionCall(call) => self.call(call.inner(), call.span(), used),
            Expr::Unary(unary) => {
                let Unary::Not(not) = unary.inner();
                self.walk(&not.clone().into_inner().take().1, Use::Value);
            }
            Expr::Abort(abort) => abort.message.iter().for_each(|expr| self.walk(expr, Use::Value)),
            Expr::Return(returned) => self.walk(&returned.expr, Use::Value),
        }
    }

    fn block(&mut self, block: &Block, used: Use) {
        let last = block.0.len().saturating_sub(1);
        for (n, expr) in block.0.iter().enumerate() {
            self.walk(expr, if n < last { Use::Statement } else { used });
        }
    }

    fn container(&mut self, container: &Container, used: Use) {
        match container {
            Container::Group(group) => self.walk(&group.0, used),
            Container::Block(block) => self.block(block.inner(), used),
            Container::Array(array) => array.clone().into_inner().into_iter().for_each(|it| self.walk(&it, Use::Value)),
            Container::Object(object) => {
                object.clone().into_inner().into_iter().for_each(|(_, it)| self.walk(&it, Use::Value));
            }
        }
    }

    fn query(&mut self, query: &Node<Query>) {
        match query.target.inner() {
            QueryTarget::External(PathPrefix::Metadata) => self.metadata.push(query.span()),
            QueryTarget::External(PathPrefix::Event) | QueryTarget::Internal(_) => {}
            QueryTarget::FunctionCall(call) => self.call(call, query.target.span(), Use::Value),
            QueryTarget::Container(container) => self.container(container, Use::Value),
        }
    }

    fn call(&mut self, call: &FunctionCall, span: Span, use_of: Use) {
        for argument in &call.arguments {
            self.walk(&argument.expr, Use::Value);
        }
        if let Some(closure) = &call.closure {
            self.block(closure.block.inner(), Use::Value);
        }
        self.calls.push(Call { call: call.clone(), span, use_of });
    }

    fn assignment(&mut self, assignment: &Assignment) {
        match assignment {
            Assignment::Single { target, op, expr } => {
                self.walk(expr, Use::Value);
                self.target(target, op, Some(expr));
            }
            Assignment::Infallible { ok, err, op, expr } => {
                self.walk(expr, Use::Value);
                self.target(ok, op, Some(expr));
                self.target(err, op, None);
            }
        }
    }

    fn target(&mut self, target: &Node<AssignmentTarget>, op: &AssignmentOp, expr: Option<&Node<Expr>>) {
        let path = match target.inner() {
            AssignmentTarget::Noop | AssignmentTarget::Internal(_, _) => return,
            AssignmentTarget::External(None) => Vec::new(),
            AssignmentTarget::External(Some(path)) if path.prefix == PathPrefix::Metadata => {
                self.metadata.push(target.span());
                return;
            }
            AssignmentTarget::External(Some(path)) => path.path.segments.clone(),
            AssignmentTarget::Query(query) => match query_path(query) {
                Some(path) => path.segments.clone(),
                None => return,
            },
        };
        self.assigned.push(Assigned { path, span: target.span(), op: op.clone(), expr: expr.cloned() });
    }
}
