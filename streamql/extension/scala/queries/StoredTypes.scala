package org.apache.spark.sql.streamql.queries

import scala.collection.mutable

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.delta.{DeltaConfigs, Snapshot, TypeWidening}
import org.apache.spark.sql.delta.actions.{Protocol, TableFeatureProtocolUtils}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.{AlterTableReplaceColumnsDeltaCommand, AlterTableSetPropertiesDeltaCommand}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

/**
 * How the columns of a query are stored in those of its table. The query's columns may have got other types since the table was made. Then
 * a column of the table gets a wider type, or new fields in its structs. Delta must be able to read the earlier files in that type.
 * `columns`: of the table; None: there is no table yet.
 */
class StoredTypes(columns: Option[StructType]) {
  import StoredTypes._

  private val found = mutable.ArrayBuffer[Misfit]()
  private var isWider = false

  /** The columns whose values cannot be stored, without loss, in those of the table. */
  def misfits: Seq[Misfit] = found.toSeq
  /** Whether columns of the table must get other types before it can hold the rows. */
  def widens: Boolean = isWider

  /** A column of the query, in the type that it gets in the table. */
  def column(e: Expression, name: String, metadata: Option[Metadata] = None): Alias = {
    val value = columns.flatMap(_.find(_.name.equalsIgnoreCase(name))).fold(e) { was =>
      common(was.dataType, e.dataType) match {
        case None =>
          found += misfit(was.name, was.dataType, e.dataType)
          e
        case Some(t) =>
          isWider = isWider || !DataType.equalsIgnoreNullability(t, was.dataType)
          if (DataType.equalsIgnoreNullability(t, e.dataType)) e else cast(e, t)
      }
    }
    Alias(value, name)(explicitMetadata = metadata)
  }

  /** The columns that the table has for states, if they cannot hold states of some types. None: they can, or there is no table yet. */
  def otherStates(types: Seq[DataType]): Option[Seq[StructField]] =
    columns.map(_.filter(_.name.startsWith(AggregateStates.STATE))).filterNot { was =>
      was.size == types.size && was.zip(types).forall { case (f, t) => common(f.dataType, t).nonEmpty }
    }
}

object StoredTypes {
  /** A column or a field that has the type `was` in the table, and `now` in the query. None: the query has no such field. */
  case class Misfit(column: String, was: String, now: Option[String])

  /** A value in the type of a table's column. A cast of a VARIANT needs a time zone, even if it is to VARIANT. */
  def cast(e: Expression, t: DataType): Cast =
    Cast(e, t.asNullable, Option.when(Cast.needsTimeZone(e.dataType, t))(SQLConf.get.sessionLocalTimeZone), EvalMode.ANSI)

  /** The type that a column of the type `was` must get so that it can hold values of `now`, too. None: there is no such type. */
  private def common(was: DataType, now: DataType): Option[DataType] = (was, now) match {
    case _ if DataType.equalsIgnoreNullability(was, now) => Some(was)
    case (w: StructType, n: StructType) if w.forall(f => field(n, f.name).nonEmpty) =>
      val fields = n.map(f => field(w, f.name).fold(Option(added(f)))(old => common(old.dataType, f.dataType).map(t => old.copy(dataType = t))))
      Option.when(fields.forall(_.nonEmpty))(StructType(fields.flatten))
    case (ArrayType(w, holdsNull), ArrayType(n, _)) => common(w, n).map(ArrayType(_, holdsNull))
    case (MapType(wk, wv, holdsNull), MapType(nk, nv, _)) => for (k <- common(wk, nk); v <- common(wv, nv)) yield MapType(k, v, holdsNull)
    case (w: AtomicType, n: AtomicType) if TypeWidening.isTypeChangeSupported(w, n) => Some(n)
    case _ if isHeld(now, was) => Some(was)
    case _ => None
  }

  private def field(s: StructType, name: String): Option[StructField] = s.find(_.name.equalsIgnoreCase(name))

  private def added(f: StructField): StructField = StructField(f.name, f.dataType.asNullable)

  /** Whether a column of the type `was` holds all numbers of the type `now`. This happens if a source got a narrower column, or went back
   * to an earlier version. */
  private def isHeld(now: DataType, was: DataType): Boolean = (now, was) match {
    case (n: IntegralType, w: DecimalType) => w.isWiderThan(DecimalType.forType(n))
    case (n: NumericType, w: NumericType) => TypeWidening.isTypeChangeSupported(n, w)
    case _ => false
  }

  /** Finds where two types differ that have no common type. */
  private def misfit(path: String, was: DataType, now: DataType): Misfit = (was, now) match {
    case (w: StructType, n: StructType) =>
      w.collectFirst { case f if field(n, f.name).forall(other => common(f.dataType, other.dataType).isEmpty) =>
        field(n, f.name).fold(Misfit(s"$path.${f.name}", f.dataType.sql, None))(other => misfit(s"$path.${f.name}", f.dataType, other.dataType))
      }.get
    case (ArrayType(w, _), ArrayType(n, _)) => misfit(s"$path.element", w, n)
    case (MapType(wk, wv, _), MapType(nk, nv, _)) =>
      if (common(wk, nk).isEmpty) misfit(s"$path.key", wk, nk) else misfit(s"$path.value", wv, nv)
    case _ => Misfit(path, was.sql, Some(now.sql))
  }

  /** Gives the columns of a table the types that `rows` need. Other processes may do so at the same time. */
  def widen(session: ClassicSession, path: String, rows: Seq[Attribute]): Unit = {
    def table = DeltaTableV2(session, new Path(path))
    val snapshot = table.deltaLog.update()
    val columns = snapshot.schema.map { f =>
      rows.find(_.name.equalsIgnoreCase(f.name)).flatMap(a => common(f.dataType, a.dataType)).fold(f)(t => f.copy(dataType = t))
    }
    if (StructType(columns) != snapshot.schema) {
      val properties = needed(session, snapshot, StructType(columns))
      if (properties.nonEmpty) AlterTableSetPropertiesDeltaCommand(table, properties).run(session)
      AlterTableReplaceColumnsDeltaCommand(table, columns).run(session)
    }
  }

  /** The properties that a table must get before its columns get other types. Delta enables
   * few features by itself in a table that exists. */
  private def needed(session: ClassicSession, s: Snapshot, columns: StructType): Map[String, String] = {
    val isTyped = TypeWidening.containsWideningTypeChanges(s.schema, columns) && !TypeWidening.isEnabled(s.protocol, s.metadata)
    val features = Protocol.extractAutomaticallyEnabledFeatures(session, s.metadata.copy(schemaString = columns.json), s.protocol)
    Option.when(isTyped)(DeltaConfigs.ENABLE_TYPE_WIDENING.key -> "true").toMap ++
      features.filterNot(s.protocol.isFeatureSupported).map(f => TableFeatureProtocolUtils.propertyKey(f) -> "supported")
  }

  /** A value in a later type of its column. Fields that were added since are NULL. None: it cannot be made a value of that type. */
  def filled(e: Expression, now: DataType): Option[Expression] = inType(e, now).map(v => if (v.dataType == now) v else Cast(v, now))

  private def inType(e: Expression, now: DataType): Option[Expression] = (e.dataType, now) match {
    case (was, _) if DataType.equalsIgnoreCompatibleNullability(was, now) => Some(e)
    case (was: StructType, n: StructType) if was.forall(f => field(n, f.name).nonEmpty) =>
      val values = n.map(f => was.indexWhere(_.name.equalsIgnoreCase(f.name)) match {
        case -1 => Some(Literal(null, f.dataType))
        case i => inType(GetStructField(e, i), f.dataType)
      })
      Option.when(values.forall(_.nonEmpty)) {
        val made = CreateNamedStruct(n.zip(values.flatten).flatMap { case (f, v) => Seq(Literal(f.name), v) })
        If(IsNull(e), Literal(null, made.dataType), made)
      }
    case (ArrayType(was, holdsNull), ArrayType(n, _)) =>
      val one = NamedLambdaVariable("x", was, holdsNull)
      inType(one, n).map(v => ArrayTransform(e, LambdaFunction(v, Seq(one))))
    case (MapType(wk, wv, holdsNull), MapType(nk, nv, _)) =>
      val (key, value) = (NamedLambdaVariable("k", wk, nullable = false), NamedLambdaVariable("v", wv, holdsNull))
      for (k <- inType(key, nk); v <- inType(value, nv)) yield
        MapFromArrays(ArrayTransform(MapKeys(e), LambdaFunction(k, Seq(key))), ArrayTransform(MapValues(e), LambdaFunction(v, Seq(value))))
    case (was, _) if Cast.canUpCast(was, now) => Some(Cast(e, now))
    case _ => None
  }
}
